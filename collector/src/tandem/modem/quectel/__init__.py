"""Quectel modules: EC2x, EG0x, EG1x, EP06 (LTE), RG5xx and RM5xx (LTE, NR NSA, NR SA)."""
