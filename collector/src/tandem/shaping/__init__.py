"""Shaping of one path on the probe itself, for the time of a run: rate, delay and loss, both ways."""
