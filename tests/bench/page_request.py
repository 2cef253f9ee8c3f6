"""What a carrier needs, for a server on loopback."""

from __future__ import annotations

from pathlib import Path

from tandem.experiment.control import Session
from tandem.experiment.pageload.request import PARAMETERS, Request, read
from tandem.experiment.parameters import check


def loopback(folder: Path, port: int) -> tuple[Request, Session]:
    """A request over ``lo``, and a session that nobody checks."""
    (folder / "token").write_text("unused")
    server = {
        "control": "http://127.0.0.1:9",
        "measurement": f"http://127.0.0.1:{port}",
        "token_file": str(folder / "token"),
    }
    paths = [{"name": "a", "interface": "lo"}]
    asked = check(PARAMETERS, {"run": "bench", "kind": "tcp", "path": "a", "paths": paths, "server": server})
    return read(asked), Session("bench", "a")
