"""The other end of the measurements: endpoint, ingest gateway, store and report."""

__version__ = "0.1.0"
