"""A drive out of an export, played again by the printed command: its runs are made again, and the replay is held against the drive."""

import json
import re
import shlex
from pathlib import Path

import pytest

from support.rehearsals import demo
from tandem.mobility.settings import Settings
from tandem_bench.run.programs import Owner
from tandem_bench.scenario.recorded.exported import rows

pytestmark = pytest.mark.system
pytest.importorskip("pyarrow", reason="pip install -r requirements/lock.txt")
TEXTS = ("docs/campaigns/campaigns.md", "docs/campaigns/rehearse.md")
REPOSITORY = Path(__file__).resolve().parents[2]


def printed(text: str) -> list[str]:
    """The words behind ``./kit demo`` in a text."""
    (line,) = re.findall(r"^\./kit demo (--from-run .*?)(?: +#.*)?$", (REPOSITORY / text).read_text(), re.MULTILINE)
    return shlex.split(line)


def gap_at_the_step_ns(replay: Path) -> int:
    """Between the last poll of operator A above the drive's step down by 12 dB and the first one below it."""
    told = json.loads((replay / "campaign.json").read_text())
    (path,) = (name for name, one in told["paths"].items() if one["operator"] == "A")
    span = (told["started_utc_ns"], told["ended_utc_ns"])
    polls = rows(replay, told["probe"], "radio", ("path", "rsrp_dbm", "monotonic_ns"), *span)
    heard = [(poll["rsrp_dbm"], poll["monotonic_ns"]) for poll in polls if poll["path"] == path and poll["rsrp_dbm"]]
    low_dbm = min(level for level, _ in heard)
    below = next(number for number, (level, _) in enumerate(heard) if level == low_dbm)
    return int(heard[below][1] - heard[below - 1][1])


def test_every_text_prints_the_same_command():
    assert len({tuple(printed(text)) for text in TEXTS}) == 1


def test_a_drive_is_played_again_and_compared(tmp_path):
    from support.drive_export import write_export  # needs pyarrow

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
    assert (table["handover", "A"]["drive"], table["handover", "A"]["distance"]) == (1, 1)
    # No drop is reported between polls that are no successive ones: a busy machine may leave a poll out beside the step.
    drop = table["signal_drop", "A"]
    assert (drop["drive"], drop["distance"]) == (1, gap_at_the_step_ns(tmp_path / "out") <= Settings().successive_ns)
    downloads = {what: row for (what, _), row in table.items() if what.startswith("goodput")}
    assert {what: row["n"] for what, row in downloads.items()} == {
        "goodput of TCP A, Mbit/s": 1,
        "goodput of TCP B, Mbit/s": 1,
        "goodput of MPTCP, Mbit/s": 1,
    }
    assert all(row["replay"] > 0 for row in downloads.values())
    assert "found again" in done.stdout
    assert (tmp_path / "out" / "probe" / "probe-1" / "records" / "radio").is_dir()
