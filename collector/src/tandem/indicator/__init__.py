"""What the kit shows to whoever carries it: a status LED, and an e-paper where there is one."""
