"""Captures to connections and tables: what ``tandem-server analyse`` does. See docs/reference/captures.md."""
