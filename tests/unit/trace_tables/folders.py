"""Folders with captures, the command as a person calls it, and Parquet as rows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from captures import MS, pcap, pcapng
from scenes import Multipath, plain_download

pytest.importorskip(
    "tandem_server.tandem_trace_core",
    reason="the native pass is not built; ./kit setup compiles it",
    exc_type=ImportError,
)


def two_subflows(version: int = 1) -> bytes:
    """4000 bytes over two subflows, half each; 1000 of them again on the second."""
    scene = Multipath(version)
    _, s1 = scene.open()
    _, s2 = scene.join(100 * MS, backup=1)
    scene.data(s1, 200 * MS, 0, 0, 1000)
    scene.data(s2, 201 * MS, 0, 3000, 1000)
    scene.data(s2, 202 * MS, 1000, 2000, 1000)
    scene.data(s1, 203 * MS, 1000, 1000, 1000)
    scene.acknowledge(s1.other(), 204 * MS, 2000, 4000)
    scene.data(s2, 205 * MS, 2000, 500, 1000)
    return pcapng(scene.wire.packets)


def plain(client: str = "10.0.0.1", server: str = "192.0.2.9") -> bytes:
    return pcap(plain_download(client, server).packets)


def fill(folder: Path, captures: int) -> Path:
    """As many captures, by turns plain and multipath, with two in a folder below where there are so many."""
    for number in range(captures):
        place = folder / "later" if number >= captures - 2 > 0 else folder
        place.mkdir(parents=True, exist_ok=True)
        content = two_subflows() if number % 2 else plain(server=f"192.0.2.{number + 1}")
        (place / f"{number:02}.pcap").write_bytes(content)
    return folder


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "tandem_server", "analyse", *map(str, words)]


def run(*words: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command(*words), capture_output=True, text=True, check=False)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done


def told(*words: object, status: int = 0) -> list[dict[str, Any]]:
    """What ``--json`` prints."""
    return json.loads(run(*words, "--json", status=status).stdout)


def tables(out: Path, name: str) -> list[dict[str, Any]]:
    """All parts' rows, in order of the parts' names."""
    pq = pytest.importorskip("pyarrow.parquet", reason="no pyarrow; pip install -r requirements/dev.txt")
    return [
        row
        for path in sorted((out / name).glob("*.parquet"))
        for row in pq.read_table(path, partitioning=None).to_pylist()
    ]


def tree(out: Path) -> dict[str, bytes]:
    """Every file below, by name."""
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
