"""A drive out of an export, played again by the printed command: its runs are made again, and the replay is held against the drive."""

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from support.rehearsals import demo
from tandem.mobility.settings import Settings
from tandem_bench.run.programs import Owner

pytestmark = pytest.mark.system
pq = pytest.importorskip("pyarrow.parquet", reason="pip install -r requirements/lock.txt")
TEXTS = ("docs/campaigns/campaigns.md", "docs/campaigns/rehearse.md")
REPOSITORY = Path(__file__).resolve().parents[2]


def printed(text: str) -> list[str]:
    """The words behind ``./kit demo`` in a text."""
    (line,) = re.findall(r"^\./kit demo (--from-run .*?)(?: +#.*)?$", (REPOSITORY / text).read_text(), re.MULTILINE)
    return shlex.split(line)


def drops_polled(folder: Path) -> int:
    """How many successive polls of operator A differ as the drive's step does."""
    columns = ["operator", "monotonic_ns", "rsrp_dbm"]
    rows = [row for file in folder.rglob("*.parquet") for row in pq.read_table(file, columns=columns).to_pylist()]
    polls = sorted((row["monotonic_ns"], row["rsrp_dbm"]) for row in rows if row["operator"] == "A" and row["rsrp_dbm"])
    apart_ns = Settings().successive_ns
    return sum(b[1] - a[1] <= -6 and b[0] - a[0] <= apart_ns for a, b in pairwise(polls))


def test_every_text_prints_the_same_command():
    assert len({tuple(printed(text)) for text in TEXTS}) == 1


def test_a_drive_is_played_again_and_compared(tmp_path):
    from support.drive_export import write_export

    export = write_export(tmp_path / "export")
    Owner.of_caller().give(tmp_path)
    words = printed(TEXTS[0])
    for option, value in (
        ("--from-run", export),
        ("--probe", "kit-1"),
        ("--duration", 60),
        ("--out", tmp_path / "out"),
    ):
        words[words.index(option) + 1] = str(value)
    done = demo(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "out" / "replay" / "comparison.json").read_text())
    table = {(row["what"], row["operator"]): row for row in told["rows"]}
    # The modem says the drive's level to the decibel; a poll beside a step may still hear the one before.
    assert table["RSRP, half of the polls are nearer", "A"]["distance"] == 0
    assert table["RSRP, half of the polls are nearer", "B"]["n"] > 10
    assert (table["handover", "A"]["drive"], table["handover", "A"]["distance"]) == (1, 1), table["handover", "A"]
    # A machine that is late leaves a second out, and then no two successive polls stand on the step.
    drops = drops_polled(tmp_path / "out" / "probe" / "probe-1" / "records" / "radio")
    row = table["signal_drop", "A"]
    assert (row["drive"], row["replay"], row["distance"]) == (1, drops, drops), row
    downloads = {what: row for (what, _), row in table.items() if what.startswith("goodput")}
    assert {what: row["n"] for what, row in downloads.items()} == {
        "goodput of TCP A, Mbit/s": 1,
        "goodput of TCP B, Mbit/s": 1,
        "goodput of MPTCP, Mbit/s": 1,
    }
    assert all(row["replay"] > 0 for row in downloads.values())
    assert "found again" in done.stdout
    assert (tmp_path / "out" / "probe" / "probe-1" / "records" / "radio").is_dir()
