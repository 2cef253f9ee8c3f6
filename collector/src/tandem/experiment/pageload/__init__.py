"""Page loads: see README.md."""
