"""Captures to connections and tables: what ``tandem-server analyse`` does. See README.md."""
