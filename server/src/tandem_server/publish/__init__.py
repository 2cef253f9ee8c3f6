"""A campaign folder made into a package that may be given away: places cut, identities absent, described (docs/reference/ledger.md)."""
