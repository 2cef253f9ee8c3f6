"""What a campaign's records say: scores against the truth, runs against capacity, the papers' tables. Pure functions."""
