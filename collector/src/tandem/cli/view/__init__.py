"""The status object as people see it: a screen, plain lines, a table."""
