"""Which release of the collector a probe runs, and the way back from one that does not measure.

A release is a folder below /opt/tandem with a Python environment of its own; ``current`` is a link to the one that runs. ``staged`` holds,
as a tree from /, the files that go with it (configuration, unit). A switch puts both in place, starts the collector anew and waits until it
reports healthy; else link and files are as before. What was before is on the disk before anything is touched, so that a boot can take back
a switch that a power cut left unproven. Runs on the probe with the system's Python (3.11 or later) alone.
"""
