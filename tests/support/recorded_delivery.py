"""Links whose delivery depends on load, as traces; recordings of such by the example experiment ``delivery``, and their replays."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.emulated_links import offered_pair
from support.experiment_process import parameters, run
from support.two_paths import REPOSITORY

DELIVERY = str(REPOSITORY / "collector/examples/experiments/delivery")
RTT_MS = 50.0
LIGHT_SHARE = 0.4
"""Of what the loaded link delivers, the lone packet's."""
_RADIO_MBIT = (24, 18, 12, 20, 28, 30, 22, 16)
_STEP_MS = 400


def hidden(folder: Path) -> list[str]:
    """A link that nobody knows, as options of ``tandem-link``: its radio goes up and down, and hardly used it gives less."""
    files = []
    for name, share in (("loaded", 1.0), ("light", LIGHT_SHARE)):
        lines: list[str] = []
        sent = 0.0
        for ms in range(_STEP_MS * len(_RADIO_MBIT)):
            sent += _RADIO_MBIT[ms // _STEP_MS] * share * 1000 / 12_000
            lines += [f"{ms + 1}\n"] * (int(sent) - len(lines))
        files.append(folder / f"hidden-{name}.down")
        files[-1].write_text("".join(lines))
    return link(files[0], files[1], RTT_MS)


def link(loaded: Path, light: Path | None, rtt_ms: float) -> list[str]:
    """Options of ``tandem-link``: down by traces, up without a bound that matters."""
    by_load = [] if light is None else ["--down-light-trace", str(light)]
    queues = ["--buffer-down-bytes", "600000", "--buffer-up-bytes", "600000"]
    return ["--down-trace", str(loaded), *by_load, "--up-bit-per-s", "20000000", "--rtt-ms", f"{rtt_ms:.3f}", *queues]


def experiment(options: list[str], name: str, **own: Any) -> dict[str, Any]:
    """The last line of an experiment over two such links."""
    with offered_pair({"a": options, "b": options}) as (pair, server):
        return run(pair, name, parameters(server, **own), 1200)


def recorded(options: list[str], folder: Path, seconds: float) -> Path:
    """A recording of such a link as the collector leaves it: a manifest."""
    line = experiment(options, DELIVERY, seconds=seconds, settle_s=1.0)
    assert line["failure"] is None, line["failure"]
    manifest = folder / "run.json"
    manifest.write_text(json.dumps({"result": line["result"]}))
    return manifest


def traces(manifest: Path, folder: Path) -> tuple[Path, Path]:
    """The traces of the loaded link and of one hardly used, as a person makes them."""
    argv = [sys.executable, "-m", "tandem_bench", "scenario", "traces", str(manifest), "--out", str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "loaded.down", folder / "light.down"
