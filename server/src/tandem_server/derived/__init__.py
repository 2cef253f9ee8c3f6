"""Series that the server makes of what probes sent: coverage by the hour and the day, pairs of runs. See docs/reference/ledger.md."""
