"""The rehearsal: every program of the kit, started by its own command line, through one commute on one machine."""
