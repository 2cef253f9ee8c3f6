"""A spool of the format before this one, as a killed collector left it on a card: ``former/`` was written by that version's own code."""

import logging
import shutil
from pathlib import Path

import pytest

from tandem.schema.record import Record
from tandem.spool import Spool

FORMER = Path(__file__).with_name("former")
ID = "858cc9e51bfd"
LEFT = {"lock", "queue.sqlite", "queue.sqlite-shm", "queue.sqlite-wal"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(FORMER, tmp_path / "spool")
    return tmp_path / "spool"


def test_what_waits_is_taken_over_with_its_numbers_and_the_spools_id(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        spool = Spool(folder, "another boot")
    assert [record.getMessage() for record in caplog.records] == [
        "spool: it has a new format, 61 records that wait were taken over"
    ]
    assert spool.notices() == []
    counts = spool.counts()
    assert (counts.made, counts.sent, counts.rejected, counts.dropped, counts.pending) == (126, 59, 1, 5, 61)
    assert counts.by_measurement == {"radio": 109, "event": 12}
    assert (spool.identity.id, spool.identity.first) == (ID, 1)
    assert {file.name for file in folder.iterdir()} == LEFT
    spool.append([Record.make("radio", {"path": "a"}, {"eci": 1}, 1)])
    batch = spool.take(1000)
    assert batch is not None
    numbers = [item.seq for item in batch.items]
    assert len(set(numbers)) == len(numbers) == 62
    assert max(numbers) == 127
    assert {item.boot for item in batch.items} == {"another boot", "b1c0ffee-0000-4000-8000-000000000001"}
    spool.acknowledge(batch)
    spool.close()
    caplog.clear()
    spool = Spool(folder, "another boot")
    assert (spool.counts().pending, caplog.records) == (0, [])
    spool.close()


def test_a_power_cut_before_the_former_files_were_removed_takes_nothing_over_twice(folder: Path) -> None:
    spool = Spool(folder, "boot")
    counts = spool.counts()
    spool.close()
    shutil.copytree(FORMER, folder, dirs_exist_ok=True)
    spool = Spool(folder, "boot")
    assert spool.counts() == counts
    spool.close()
    assert {file.name for file in folder.iterdir()} <= LEFT


@pytest.mark.parametrize("file", ["000000000081-20260923.sqlite", "account.json", "identity.json"])
def test_one_that_cannot_be_read_is_set_aside_as_a_whole(folder: Path, file: str) -> None:
    (folder / file).write_bytes(b"\0" * 3000)
    (folder / f"{file}-wal").unlink(missing_ok=True)
    spool = Spool(folder, "boot")
    (notice,) = spool.notices()
    assert notice.kind == "spool_dropped"
    assert "in quarantine" in notice.detail
    assert (spool.counts().made, spool.identity.first) == (0, 1)
    assert spool.identity.id != ID
    names = {name.partition(".damaged-")[0] for name in (path.name for path in (folder / "quarantine").iterdir())}
    assert {path.name for path in FORMER.iterdir()} - names <= {path.name for path in FORMER.glob("*-wal")}
    spool.append([Record.make("radio", {"path": "a"}, {"eci": 1}, 1)])
    assert spool.counts().pending == 1
    spool.close()
