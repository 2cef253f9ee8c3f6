"""The optional e-paper: a Waveshare 2.13 inch panel (SSD1680, 250 × 122), which says the state in words."""
