"""When files of runs go to the server, over what, and when the probe's copies may go."""
