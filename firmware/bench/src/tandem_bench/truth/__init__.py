"""Ground truth: what the bench did, with times, to score detectors against."""
