"""What radio records tell about movement: pure state machines, records in, event records out."""
