"""Experiments: one folder each, which registers by its name. ``base`` says what an experiment is."""

from __future__ import annotations


def names() -> list[str]:
    """The experiments there are: the sub-packages of this one."""
    import pkgutil  # here: every run starts a process that loads this package and asks for no names

    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.ispkg)
