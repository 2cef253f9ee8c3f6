"""What a congestion controller is: the kernel's own, or the BPF object that ``tandem-server congestion load`` notes here.

The kernel tells neither to a program without privileges, and the measurement endpoint has none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

COUPLED = ("lia", "olia", "balia")
"""Those of the object (``server/congestion``), as the kernel lists them and TCP_CONGESTION takes them."""
LOADED = Path("/run/tandem-congestion/loaded.json")
"""``{"controllers": [NAME, ...], "object_sha256": HEX}`` while the object is loaded; in /run, so that no boot inherits it."""


def described(name: str | None, loaded: Path = LOADED) -> dict[str, str | None] | None:
    """``name``; ``kind``: ``bpf`` or ``kernel`` (built in, or a module of it); ``object_sha256`` of the BPF object, else None. None
    without a name."""
    if name is None:
        return None
    note = read_note(loaded)
    if note is None or name not in note["controllers"]:
        return {"name": name, "kind": "kernel", "object_sha256": None}
    return {"name": name, "kind": "bpf", "object_sha256": note["object_sha256"]}


def read_note(loaded: Path = LOADED) -> dict[str, Any] | None:
    """The note; None where there is none, or it is not as above."""
    try:
        note = json.loads(loaded.read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(note, dict) or not isinstance(note.get("object_sha256"), str):
        return None
    return note if isinstance(note.get("controllers"), list) else None
