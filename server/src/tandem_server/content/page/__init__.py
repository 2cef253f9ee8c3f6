"""Stored pages for the experiment ``pageload``: recorded, imported or made, and replayed by the endpoint (server/spec/stored-page.md)."""
