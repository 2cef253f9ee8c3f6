"""What the database holds beside the probes' records: the server's own measurements, derived series, roll-ups, and how they are shown."""
