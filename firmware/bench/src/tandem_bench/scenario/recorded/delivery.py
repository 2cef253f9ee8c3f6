"""A run of the experiment ``delivery`` (collector/examples) as two packet-delivery traces: of the loaded link, and of one hardly used. Pure
but for its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tandem_bench.scenario.errors import ScenarioError

PAYLOAD_BYTES = 1448
"""Of an opportunity of 1500 bytes: IPv4 and TCP with its time stamps take the rest."""

_HINT = "hint: RUN.json of the probe's folder of runs, made by the experiment delivery (collector/examples/experiments)"


def traces(manifest: Path) -> tuple[dict[str, list[int]], float]:
    """``loaded`` and ``light``: milliseconds of opportunities, from a run's manifest; and the light path's round trip, ms. ScenarioError
    where it is none, or it recorded nothing."""
    try:
        told: dict[str, Any] = json.loads(manifest.read_bytes())
        result = told["result"]
        packets = [int(n) for n in result["loaded"]["packets"]]
        trains = [(int(first), int(last), int(count)) for first, last, count in result["light"]["trains"]]
        rtt_ms = float(result["light"]["rtt_ms"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no recording of deliveries"
        raise ScenarioError(manifest, None, str(why), _HINT) from None
    found = {"loaded": [ms for ms, n in enumerate(packets) for _ in range(n)], "light": light(trains)}
    for name, lines in found.items():
        if not lines or lines[-1] == 0:
            raise ScenarioError(manifest, None, f"nothing came over the {name} path", "hint: record again")
    return found, rtt_ms


def light(trains: list[tuple[int, int, int]]) -> list[int]:
    """Each train (µs of its first and last arrival, bytes after the first) is the pace until the next one begins; one whose packets
    were read together tells none."""
    paced = [
        (first, last, (last - first) * PAYLOAD_BYTES / count)
        for first, last, count in trains
        if last > first and count > 0
    ]
    ends = [first for first, *_ in paced[1:]] + [last + apart for _, last, apart in paced[-1:]]
    lines: list[int] = []
    for (first, _, apart), end in zip(paced, ends, strict=True):
        lines += [int(first + n * apart) // 1000 for n in range(max(1, round((end - first) / apart)))]
    return sorted(lines)


def write(found: dict[str, list[int]], folder: Path) -> dict[str, Path]:
    """``FOLDER/loaded.down`` and ``FOLDER/light.down``; OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: folder / f"{name}.down" for name in found}
    for name, lines in found.items():
        files[name].write_text("".join(f"{ms}\n" for ms in lines))
    return files
