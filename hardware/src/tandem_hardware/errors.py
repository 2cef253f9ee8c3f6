"""What is said when a source is wrong or this machine lacks a program."""

from __future__ import annotations


class SourceError(ValueError):
    """A source is wrong: one line that names the file, the line and the mend. Exit status 2."""


class LackError(RuntimeError):
    """This machine lacks a program: one line with the mend. Exit status 3."""
