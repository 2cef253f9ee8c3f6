"""What becomes of Multipath TCP on each path: native, stripped, dropped, fallen back; as the primary path and as one that joins."""
