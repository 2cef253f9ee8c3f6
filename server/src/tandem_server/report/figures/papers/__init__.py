"""One file a paper, or a part of one; each is found by its ``FIGURES``."""
