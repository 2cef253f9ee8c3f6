"""Multipath TCP on the probe: sockets with a chosen primary path, statistics of every subflow, routes and endpoints of paths."""
