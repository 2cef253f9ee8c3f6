"""The modem family u-blox."""
