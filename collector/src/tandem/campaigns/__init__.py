"""The papers' campaigns as files, found by name. To add one: a file ``NAME.toml`` here (docs/campaigns/campaigns.md has its keys)."""

from __future__ import annotations

from importlib.resources import files


def names() -> list[str]:
    """The campaigns there are."""
    return sorted(f.name.removesuffix(".toml") for f in files(__name__).iterdir() if f.name.endswith(".toml"))


def text(name: str) -> str:
    """The file of a campaign; KeyError when there is none."""
    if name not in names():
        raise KeyError(name)
    return files(__name__).joinpath(f"{name}.toml").read_text("utf-8")
