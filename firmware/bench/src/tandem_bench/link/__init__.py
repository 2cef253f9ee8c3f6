"""The emulated radio link, seen from Python: where its program is, and a running one."""
