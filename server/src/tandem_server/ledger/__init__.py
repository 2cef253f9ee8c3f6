"""What was promised against what arrived, and the state of each probe (server/spec/ledger.md)."""
