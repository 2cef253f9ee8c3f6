"""The other end of the measurements: control channel, Multipath TCP listener, downloads, statistics at the sender."""
