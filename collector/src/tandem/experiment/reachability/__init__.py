"""Names resolved over each path, and every address pinged over each path by TCP: what resolving here and sending there costs."""
