"""Bandwidth aggregation: TCP over each path, over all at once, and Multipath TCP, for the same time each (Cordero, §3.1.2)."""
