"""The modem family SIMCom."""
