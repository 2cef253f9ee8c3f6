"""Stored pages for the experiment ``pageload``: recorded, imported or made, and replayed by the endpoint (docs/reference/pages.md)."""
