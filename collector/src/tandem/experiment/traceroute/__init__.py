"""The routers on each path to the server, and what the paths have in common."""
