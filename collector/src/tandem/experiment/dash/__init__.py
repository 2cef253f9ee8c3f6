"""Plays a stored DASH presentation without decoding it: adaptation, an emulated buffer, a log of every segment."""
