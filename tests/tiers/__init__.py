"""What ``./kit test`` runs: three tiers by name, what a change touches, many files at a time, and the words at the end."""
