"""One function a panel. A board names those it shows."""
