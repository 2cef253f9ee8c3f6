"""ZTE and GosunCn sticks and modules by AT: MF8xx, MF28x, ME36xx, GM5xx; one of the paper's Telewell sticks."""
