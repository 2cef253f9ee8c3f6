"""One file a figure, or a few of one kind; each is found by its ``FIGURES``."""
