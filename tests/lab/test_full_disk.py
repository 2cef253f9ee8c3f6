"""A disk that is full while a campaign is reported, analysed or published: one line, status 3, what was there is as it was, and the same
command goes on when there is room; and one that fills up in the middle of a trace. A real file system."""

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support import native  # noqa: F401  (skips where the native pass is not built)
from support.two_paths import lab_with

pytest.importorskip("pyarrow", reason="pip install -r requirements/lock.txt")

from support.capture_scenes import plain_download
from support.captures import pcap
from support.exported_kits import kit, write_export
from support.synthetic_campaign import Synthetic
from support.trace_gateway import TraceGateway, offered
from tandem_server.cli.main import main

pytestmark = lab_with()


@contextmanager
def small_disk(folder: Path, options: str) -> Iterator[Path]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.fixture
def disk(tmp_path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "size=64m") as folder:
        yield folder


@pytest.fixture
def export(disk) -> Path:
    made = Synthetic(seconds=30.0)
    runs = kit(made, "probe-1")
    for run in runs:
        content = pcap(plain_download().packets)
        run["files"] = [
            {"name": f"captures/{run['id']}-{p}.pcap", "bytes": len(content), "packets": 1} for p in run["paths"]
        ]
    folder = write_export(disk / "export", {"probe-1": (made, runs)}, traces=True)
    (folder / "probe" / "probe-1" / "captures").mkdir()
    for name in (file["name"] for run in runs for file in run["files"]):
        (folder / "probe" / "probe-1" / name).write_bytes(pcap(plain_download().packets))
    return folder


def fill(disk: Path, free_bytes: int) -> Path:
    room = os.statvfs(disk)
    filler = disk / "filler"
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, room.f_bavail * room.f_frsize - free_bytes)
    return filler


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


WORDS = {
    "report": ("report", "{export}"),
    "analyse": ("analyse", "{export}/probe", "--out", "{disk}/tables", "--workers", "1"),
    "publish": ("campaign", "publish", "{export}", "--out", "{disk}/package", "--licence", "CC0-1.0", "--no-home"),
}


@pytest.mark.parametrize("free_bytes", [0, 20_000])
@pytest.mark.parametrize("command", WORDS)
def test_it_says_so_in_one_line_leaves_nothing_half_and_goes_on_with_room(command, free_bytes, disk, export, capsys):
    words = [word.format(disk=disk, export=export) for word in WORDS[command]]
    before = content(export)
    filler = fill(disk, free_bytes)
    capsys.readouterr()
    assert main(words) == 3
    lines = [line for line in capsys.readouterr().err.splitlines() if "note:" not in line]
    assert len(lines) == 1, lines
    assert "No space left on device" in lines[0]
    assert str(disk) in lines[0]
    after = content(export)
    assert after.items() >= before.items()
    assert [name for name in after if name.endswith((".tmp", ".part"))] == []
    assert not (disk / "package").exists()
    filler.unlink()
    assert main(words) == 0, capsys.readouterr().err


def test_a_trace_that_does_not_fit_goes_on_when_there_is_room(tmp_path):
    with small_disk(tmp_path / "traces", "size=3m,mode=0750") as disk:
        gateway = TraceGateway(tmp_path)
        gateway.start()
        try:
            offer, stream = offered(random.Random(1).randbytes(5 << 20), encoding="identity")
            assert gateway.offer(offer)[0] == 507  # it is known beforehand that it will not fit
            status, _ = gateway.send(offer, 0, stream)
            assert status == 507
            kept = gateway.stream(offer).stat().st_size
            assert 2 << 20 < kept <= 3 << 20
            assert gateway.state(offer)[1] == {"state": "receiving", "offset": kept}
            subprocess.run(["mount", "-o", "remount,size=16m", disk], check=True)
            assert gateway.offer(offer) == (200, {"state": "receiving", "offset": kept})
            assert gateway.send(offer, kept, stream[kept:])[1]["state"] == "received"
        finally:
            gateway.end()
    assert "Traceback" not in gateway.log()
