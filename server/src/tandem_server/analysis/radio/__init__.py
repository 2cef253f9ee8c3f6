"""Radio events joined to the connections that were running (server/spec/radio-packets.md)."""
