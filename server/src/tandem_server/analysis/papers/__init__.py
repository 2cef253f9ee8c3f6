"""What the papers’ figures show, as numbers: pure functions and the material that they are made of."""
