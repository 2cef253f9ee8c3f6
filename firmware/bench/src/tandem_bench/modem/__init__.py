"""AT modems on pseudo-terminals: they answer as a real modem would at the radio conditions of a timeline."""
