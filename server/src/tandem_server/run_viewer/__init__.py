"""What people's browsers may read of the server: a run's report and its files. It changes nothing (docs/reference/security.md)."""
