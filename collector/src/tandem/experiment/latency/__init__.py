"""Round-trip and one-way times of UDP probes over each path, idle and beside a download."""
