"""The modem family Sierra Wireless."""
