"""Traces that probes upload: offers, streams on disk, and the stores (a folder, S3) that keep them for good."""
