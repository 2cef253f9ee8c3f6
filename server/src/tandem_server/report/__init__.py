"""The report: one self-contained HTML page made from an evaluated campaign."""
