"""A drive beside its replay: what was heard, noticed and got in each, and how far they are apart."""
