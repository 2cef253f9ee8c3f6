"""Grafana as code, from the collector's schema."""

__version__ = "0.1.0"
