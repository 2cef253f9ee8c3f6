"""A campaign as tables: types, units, absent values, and the same numbers as the report's."""

import pytest

pd = pytest.importorskip("pandas", reason="pip install -r requirements/lock.txt")

from paper_campaign import made  # noqa: E402

from support.synthetic_campaign import Synthetic  # noqa: E402
from support.synthetic_folder import with_database, write  # noqa: E402
from tandem.schema.metrics import MEASUREMENTS  # noqa: E402
from tandem_server.analysis import load  # noqa: E402


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    one = made()
    return one, load(write(one, tmp_path_factory.mktemp("notebook") / "campaign"), one.source)


def test_every_record_is_a_row_with_all_that_the_schema_has(found):
    one, c = found
    for table in ("radio", "events", "round_trips", "subflows", "connections"):
        frame, measurement = getattr(c, table), table.removesuffix("s")
        assert len(frame) == sum(name == measurement for name, _, _ in one.source.points)
        assert {f.name for f in MEASUREMENTS[measurement].fields} < set(frame.columns)
        assert frame["utc"].is_monotonic_increasing
        assert str(frame["utc"].dt.tz) == "UTC"


def test_what_is_absent_is_not_a_number(found):
    _, c = found
    silent = c.radio[c.radio["state"] == "no_answer"]
    assert len(silent) == 3
    assert silent["rsrp_dbm"].isna().all()
    assert str(c.radio["eci"].dtype) == "Int64"
    assert str(c.connections["fallback"].dtype) == "boolean"
    assert c.runs["in_ledger"].isna().all()  # no registry in this folder
    assert any("registry.sqlite is not there" in line for line in c.missing)


def test_runs_and_their_tables_go_together(found):
    one, c = found
    assert set(c.runs["run"]) == {m["id"] for m in one.manifests} == set(c.ledger["run"])
    downloads = c.runs[c.runs["experiment"] == "download"]
    assert set(c.tables["download"]["run"]) <= set(downloads["run"])
    joined = c.tables["download"].merge(c.runs[["run", "mobility"]], on="run")
    assert set(joined["mobility"].dropna()) == {"static", "low", "high"}
    labelled = c.runs[c.runs["label"] == "driving"]
    assert set(labelled["mobility"]) == {"high"}
    assert "subflows" in repr(c)


def test_every_column_is_told_with_its_unit(found):
    _, c = found
    told = {(row.table, row.column): row.unit for row in c.columns.itertuples()}
    for name in ("runs", "radio", "events", "subflows", "connections", "ledger"):
        assert {(name, column) for column in getattr(c, name).columns} <= set(told)
    assert told["radio", "rsrp_dbm"] == "dBm"
    assert told["runs", "goodput_bit_per_s"] == "bit/s"
    assert told["download", "goodput_bit_per_s"] == "bit/s"


def test_records_come_out_of_the_folders_own_database(influx_binary, tmp_path):
    one = Synthetic(seconds=40.0)
    folder = with_database(one, tmp_path / "campaign", influx_binary)
    stored, listed = load(folder), load(folder, one.source)
    assert stored.missing == listed.missing == []
    assert stored.runs["in_ledger"].all()
    for name in ("radio", "events", "subflows", "connections"):
        by = [c for c in ("utc", "path", "kind", "end", "subflow", "run") if c in getattr(listed, name)]
        a, b = (getattr(c, name).sort_values(by).reset_index(drop=True) for c in (stored, listed))
        pd.testing.assert_frame_equal(a, b)


def test_without_a_database_the_tables_are_empty_and_it_says_so(tmp_path):
    one = Synthetic(seconds=40.0)
    c = load(write(one, tmp_path / "campaign"))
    assert len(c.radio) == 0
    assert "rsrp_dbm" in c.radio.columns
    assert len(c.runs) == len(one.manifests)
    assert any("holds no database of this campaign" in line for line in c.missing)
