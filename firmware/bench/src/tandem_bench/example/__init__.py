"""The example campaign: what all the papers' figures need, measured by the real kit in a few minutes on the bench."""
