"""The rehearsal: topology, links and modems in motion, and every program of the kit, started by its own command line."""
