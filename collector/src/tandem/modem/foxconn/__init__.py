"""Foxconn's modules: T99W175 (Dell DW5930e) and its kin, T77W968 (DW5821e)."""
