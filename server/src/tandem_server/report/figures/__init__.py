"""The papers’ figures: what each needs, what it draws, as SVG and as CSV."""
