"""Alcatel (TCL) Link Key IK40 and IK41, by their web server."""
