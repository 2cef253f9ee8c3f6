"""Runs: what is requested, planned, carried out by processes, and what they leave: records, captures, manifests."""
