"""Stored pages loaded over one arm, by a browser or by their object graph."""
