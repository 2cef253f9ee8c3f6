"""D-Link DWM-222."""
