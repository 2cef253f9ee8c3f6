"""A board as one self-contained page, drawn from real answers: to look at without Grafana. Close to what Grafana draws, not the same."""
