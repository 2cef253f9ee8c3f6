"""Which spool it is, and up to which number everything is settled."""

from pathlib import Path

import pytest
from test_spool_queue import BOOT, event, radio

from tandem.app.spool_account import spool_records
from tandem.spool import Spool
from tandem.spool.identity import Identity, identity


def test_a_spool_keeps_its_id_and_an_emptied_folder_gets_another(tmp_path: Path) -> None:
    seen = []
    for folder in ("a", "a", "b"):
        spool = Spool(tmp_path / folder, BOOT)
        seen.append(spool.identity)
        spool.append([radio(1)])
        spool.close()
    assert seen[0] == seen[1]
    assert seen[0].first == seen[2].first == 1
    assert seen[0].id != seen[2].id


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"3", b'{"id": 3, "first": 1}', b'{"id": "x", "first": 1}', b'{"id": "%s"}' % (b"a" * 12)]
)
def test_an_id_that_cannot_be_read_is_another_from_the_next_number_on(tmp_path: Path, damage: bytes) -> None:
    spool = Spool(tmp_path, BOOT)
    spool.append([radio(1), radio(2)])
    before = spool.identity
    spool.close()
    (tmp_path / "identity.json").write_bytes(damage)
    spool = Spool(tmp_path, BOOT)
    assert (spool.identity.first, spool.identity.id != before.id) == (3, True)
    assert identity(tmp_path, 2) == spool.identity
    spool.close()


def test_an_id_of_more_numbers_than_there_are_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "identity.json").write_text('{"id": "0123456789ab", "first": 9}')
    assert identity(tmp_path, 7) != Identity("0123456789ab", 9)


def test_settled_is_the_number_up_to_which_nothing_waits(tmp_path: Path) -> None:
    spool = Spool(tmp_path, BOOT)
    assert spool.settled() == 0
    for n in range(3):
        spool.append([radio(n), event(n)])
    assert spool.settled() == 0
    newest = spool.take(1, newest_only=True)
    assert newest is not None
    spool.acknowledge(newest)
    spool.append([radio(9)])
    assert spool.settled() == 0
    while (batch := spool.take(1)) is not None:
        spool.acknowledge(batch)
        spool.flush()
    assert spool.settled() == 7
    spool.append([radio(10)])
    assert spool.settled() == 7
    (record,) = spool_records(spool, 0.0, 4, 123)
    told = {**record.fields, "oldest_s": None}
    wanted = {
        "first": 1,
        "made": 8,
        "sent": 7,
        "rejected": 0,
        "dropped": 0,
        "settled": 7,
        "manifests": 4,
        "oldest_s": None,
    }
    assert told == {"spool": spool.identity.id, **wanted}
    spool.close()


def test_what_was_dropped_or_refused_is_settled(tmp_path: Path) -> None:
    spool = Spool(tmp_path, BOOT)
    spool.append([radio(1), radio(2)], dropped=2)
    batch = spool.take(10)
    assert sorted(item.seq for item in batch.items) == [3, 4], "the dropped came before"
    spool.reject(batch, batch.items[0].seq, "no")
    spool.acknowledge(batch)
    spool.flush()
    (record,) = spool_records(spool, None, 0, 1)
    assert [record.fields[k] for k in ("made", "sent", "rejected", "dropped", "settled")] == [4, 1, 1, 2, 4]
    assert "oldest_s" not in record.fields
    spool.close()
