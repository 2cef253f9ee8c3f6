"""The command line: one module a subcommand, found by folder; each has ``add(subparsers)``."""
