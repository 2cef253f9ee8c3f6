"""Delay aggregation: the same number of bytes by TCP over each path and by Multipath TCP (Cordero, §3.1.3)."""
