"""The bench's networks: a probe, its operators, an internet and a server, each a network namespace of one machine."""
