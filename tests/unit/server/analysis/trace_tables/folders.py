"""Folders with captures, the command as a person calls it, and Parquet as rows."""

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from support import (
    capture_scenes,
    native,  # noqa: F401  (skips where the native pass is not built)
)
from support.captures import pcap, pcapng
from tandem_server.cli.main import main


def two_subflows(version: int = 1) -> bytes:
    return pcapng(capture_scenes.two_subflows(version).wire.packets)


def plain(client: str = "10.0.0.1", server: str = "192.0.2.9") -> bytes:
    return pcap(capture_scenes.plain_download(client, server).packets)


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
    """In this process; where ``--workers`` are named, in as many more."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        if "--workers" not in words:
            patch.setattr("tandem_server.analysis.traces.batch.small", lambda _: True)
        try:
            code = main(["analyse", *map(str, words)])
        except SystemExit as ended:
            code = ended.code
    done = subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())
    assert done.returncode == status, done
    return done


def told(*words: object, status: int = 0) -> list[dict[str, Any]]:
    return json.loads(run(*words, "--json", status=status).stdout)


def tables(out: Path, name: str) -> list[dict[str, Any]]:
    """All parts' rows, in order of the parts' names."""
    pq = pytest.importorskip("pyarrow.parquet", reason="no pyarrow; pip install -r requirements/lock.txt")
    return [
        row
        for path in sorted((out / name).glob("*.parquet"))
        for row in pq.read_table(path, partitioning=None).to_pylist()
    ]


def tree(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
