"""The gateway between probes and database: who is it, is it sane, into the database, and only then an answer."""
