"""BroadMobi BM806 modules; one of the paper's Telewell sticks."""
