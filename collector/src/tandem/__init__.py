"""What runs on the probe: modems, mobility, experiments, captures, spool and export."""

__version__ = "0.1.0"
