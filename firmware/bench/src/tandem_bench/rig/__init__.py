"""The bench as a whole, without collector and server: topology, links and modems playing one scenario."""
