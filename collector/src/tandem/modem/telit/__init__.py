"""The modem family Telit."""
