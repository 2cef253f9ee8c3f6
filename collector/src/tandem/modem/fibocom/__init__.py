"""Fibocom modules: L850, L860 (Intel XMM, LTE), FM350 (MediaTek, LTE and NR), FM150, FM160, FM190 (NR)."""
