"""Campaigns: what is measured next, and why not yet. The scheduler is pure; the driver carries out what it says."""
