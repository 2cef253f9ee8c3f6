"""The contract between probe, server and dashboards: records, units, line protocol, run manifest. Standard library only."""
