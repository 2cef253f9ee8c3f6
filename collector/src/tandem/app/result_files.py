"""What is too long for a manifest becomes a file of the run, which the manifest names as it names captures. Pure.

The gateway takes manifests of 1 MiB. A log of segments of one second reaches that in some twenty minutes of play, other experiments' lists
as easily; so whatever is long goes beside the manifest, and the manifest keeps the figures.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, cast

from tandem.schema.manifest import Manifest, RunFile

FOLDER = "results"
"""Of the probe's folder, beside ``runs``."""
VALUE_BYTES = 64 * 1024
"""A value of a result that is longer than this, as JSON, gets a file of its own."""
MANIFEST_BYTES = 900_000
"""Above this the longest values go, wherever they stand: the gateway takes 1,048,576 bytes."""

_NAME = re.compile(r"[A-Za-z0-9_]{1,40}\Z")


def relieved(manifest: Manifest) -> tuple[Manifest, dict[str, bytes]]:
    """The manifest with what is long replaced by ``{"file": NAME, "rows": N}`` (``rows`` of a list), and the files by name, relative to the
    probe's folder: ``.jsonl`` with an element a line for a list, ``.json`` for anything else. As it was when nothing is long."""
    kept = cast("dict[str, Any]", {**manifest})
    files: dict[str, bytes] = {}
    for holder, key, size in list(_values(kept)):
        if holder is kept["result"] and size > VALUE_BYTES:
            _move(kept["id"], holder, key, files)
    for holder, key, _ in sorted(_values(kept), key=lambda found: -found[2]):
        if _size(kept) <= MANIFEST_BYTES:
            break
        _move(kept["id"], holder, key, files)
    kept["files"] = [
        *manifest["files"],
        *(
            RunFile(name=name, bytes=len(content), sha256=hashlib.sha256(content).hexdigest(), packets=None)
            for name, content in files.items()
        ),
    ]
    return cast("Manifest", kept), files


def _values(manifest: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, int]]:
    """Where something long may stand: the result's values, and what the experiment told beside it. Each holder is a copy of ours, which
    may be written to."""
    environment = manifest["environment"] = {**manifest["environment"]}
    holders = [(manifest, "result"), (environment, "further"), (environment, "experiment")]
    for place, name in holders:
        if isinstance(place.get(name), dict):
            holder = place[name] = {**place[name]}
            for key, value in list(holder.items()):
                if isinstance(value, dict | list | str):
                    yield holder, key, len(json.dumps(value))


def _move(run: str, holder: dict[str, Any], key: str, files: dict[str, bytes]) -> None:
    value = holder[key]
    stem = f"{FOLDER}/{run}-{key if _NAME.match(key) else 'value'}"
    while f"{stem}.json" in files or f"{stem}.jsonl" in files:
        stem += "-"
    if isinstance(value, list):
        name, text = f"{stem}.jsonl", "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in value)
        holder[key] = {"file": name, "rows": len(value)}
    else:
        name, text = f"{stem}.json", json.dumps(value, separators=(",", ":")) + "\n"
        holder[key] = {"file": name}
    files[name] = text.encode()


def _size(manifest: dict[str, Any]) -> int:
    """As ``run_manifest.write_json`` writes it."""
    return len(json.dumps(manifest, indent=1))
