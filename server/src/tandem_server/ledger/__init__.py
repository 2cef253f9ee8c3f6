"""What was promised against what arrived, and the state of each probe (docs/reference/ledger.md)."""
