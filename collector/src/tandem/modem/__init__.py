"""Modems: who they are, how each family is asked, and the thread that asks one of them once a period."""
