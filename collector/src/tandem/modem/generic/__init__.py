"""Any modem that keeps to 3GPP TS 27.007."""
