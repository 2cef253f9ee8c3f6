"""Stored pages loaded by a browser, or as an object graph where there is none."""
