"""``--out``: tables as documented, gone on with after a kill, the same bytes whoever makes them."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from folders import command, fill, run, tables, told, tree, two_subflows

from support.captures import EPOCH
from tandem_server.analysis.traces.batch import process_batch

pq = pytest.importorskip("pyarrow.parquet", reason="no pyarrow; pip install -r requirements/lock.txt")

SPEC = Path(__file__).parents[5] / "docs/reference/captures.md"


def test_tables_say_what_json_says(tmp_path):
    folder = fill(tmp_path / "caps", 5)
    out = tmp_path / "out"
    shown = told(folder, "--out", out, "--batch", 2)
    assert shown == told(folder)
    assert sorted(r["file"] for r in tables(out, "files")) == sorted(c["file"] for c in shown)
    connections = {r["file"]: r for r in tables(out, "connections")}
    whole = [t for t in tables(out, "totals") if (t["subflow"], t["direction"]) == (None, "to_opener")]
    totals = {t["file"]: t for t in whole}
    assert len(totals) == len(whole)
    for c in shown:
        row, total = connections[c["file"]], totals[c["file"]]
        assert (row["version"], row["start_utc_ns"]) == (c["version"], c["start_utc_ns"])
        assert (total["goodput_bytes"], total["reorder_queue_max_bytes"]) == (c["bytes"], c["reorder_queue_max_bytes"])
    bins = [b for b in tables(out, "bins") if b["subflow"] is None and b["direction"] == "to_opener"]
    assert sum(b["goodput_bytes"] for b in bins) == sum(c["bytes"] for c in shown)
    assert {(b["bin_start_utc_ns"] - EPOCH) % 100_000_000 for b in bins} == {0}
    assert not (out / "packets").exists()


def documented() -> dict[str, dict[str, str]]:
    made: dict[str, dict[str, str]] = {}
    for section in re.split(r"^## ", SPEC.read_text(), flags=re.M)[1:]:
        rows = re.findall(r"^\|(\w+)\|`?([\w<>]+(?:, null)?)`?\|", section, re.M)
        made[section.split("\n")[0].strip("`")] = {name: kind for name, kind in rows if name != "column"}
    return made


def test_the_schema_is_the_documented_one(tmp_path):
    folder = fill(tmp_path / "caps", 2)
    run(folder, "--out", tmp_path / "out", "--packets", "--bins", 50)
    assert {row["bin_ns"] for row in tables(tmp_path / "out", "files")} == {50_000_000}
    assert len({row["bin_start_utc_ns"] % 100_000_000 for row in tables(tmp_path / "out", "bins")}) == 2
    spec = documented()
    spec["bins"] = {**spec["totals"], **spec["bins"]}
    for name in ("rtt_median_ns", "rtt_p95_ns"):
        del spec["bins"][name]
    for table in ("files", "connections", "subflows", "totals", "bins", "events", "problems", "packets"):
        (path,) = (tmp_path / "out" / table).glob("*.parquet")
        told_types = {name: kind.removesuffix(", null") for name, kind in spec[table].items()}
        assert {field.name: plainly(field.type) for field in pq.read_schema(path)} == told_types, table
        for row in tables(tmp_path / "out", table):
            for name, kind in spec[table].items():
                assert row[name] is not None or kind.endswith(", null"), (table, name)


def plainly(kind: object) -> str:
    told_kind = str(kind)
    if told_kind.startswith(("dictionary", "string")):
        return "text"
    if told_kind.startswith("list"):
        return "list<text>" if "string" in told_kind else "list<int32>"
    return {"double": "float64"}.get(told_kind, told_kind)


def test_the_same_bytes_whichever_number_of_processes(tmp_path):
    words = (fill(tmp_path / "caps", 6), "--json", "--batch", 2, "--packets")
    told_here = run(*words, "--out", tmp_path / "here").stdout
    told_by_three = run(*words, "--out", tmp_path / "three", "--workers", 3).stdout
    assert told_here == told_by_three
    assert len(json.loads(told_here)) == 6
    made = tree(tmp_path / "here")
    assert made == tree(tmp_path / "three")
    assert len([name for name in made if name.startswith("bins/")]) == 3


def test_killed_between_parts_it_goes_on(tmp_path):
    """A pipe that nobody writes into holds the fourth batch up until the command is killed."""
    folder = fill(tmp_path / "caps", 8)
    content, held = (folder / "03.pcap").read_bytes(), folder / "03.pcap"
    held.unlink()
    os.mkfifo(held)
    out = tmp_path / "out"
    words = (folder, "--out", out, "--batch", 1)
    with subprocess.Popen(command(*words, "--workers", 2), stdout=subprocess.PIPE, text=True) as running:
        seen = 0
        while seen < 3:
            line = running.stdout.readline()
            assert line, "ended before it was killed"
            seen += ".pcap" in line
        running.send_signal(signal.SIGKILL)
        assert running.stdout.read() is not None  # to its end: the processes that it started have ended, too
    kept = tree(out)
    assert len([name for name in kept if name.startswith("manifest/")]) >= 3
    held.unlink()
    held.write_bytes(content)
    done = run(*words)
    already = int(re.search(r": (\d+) of 8 captures are in", done.stderr)[1])
    assert 3 <= already < 8
    run(folder, "--out", tmp_path / "whole", "--batch", 1)
    assert tree(out) == tree(tmp_path / "whole")
    again = run(*words, "--json")
    assert (again.stdout, again.stderr) == ("[]\n", f"tandem-server analyse: 8 of 8 captures are in {out} already\n")


def test_what_was_done_twice_is_there_once(tmp_path):
    """A batch whose worker was given up as lost, and wrote it all the same: its captures were done each by itself besides."""
    folder = fill(tmp_path / "caps", 5)
    run(folder, "--out", tmp_path / "whole", "--batch", 2)
    out = tmp_path / "out"
    run(folder, "--out", out, "--batch", 2)
    before = len(tables(out, "files"))
    for path in sorted(folder.glob("*.pcap"))[:2]:
        process_batch([str(path)], 100_000_000, False, out)
    assert len(tables(out, "files")) == before + 2
    run(folder, "--out", out, "--batch", 2)
    assert tree(out) == tree(tmp_path / "whole")


def test_a_changed_file_is_analysed_anew_and_its_old_rows_go(tmp_path):
    folder = fill(tmp_path / "caps", 3)
    out = tmp_path / "out"
    run(folder, "--out", out)
    changed, gone = folder / "00.pcap", folder / "later" / "02.pcap"
    before = [row for row in tables(out, "bins") if row["file"] != str(changed)]
    changed.write_bytes(two_subflows())
    gone.unlink()
    (connection,) = told(folder, "--out", out)
    assert (connection["file"], connection["version"]) == (str(changed), 1)
    after = tables(out, "bins")
    assert [row for row in after if row["file"] != str(changed)] == before
    versions = {row["file"]: row["version"] for row in tables(out, "connections")}
    assert versions == {str(changed): 1, str(folder / "later" / "01.pcap"): 1, str(gone): None}
    assert len(list((out / "manifest").iterdir())) == 2


def test_a_corrupt_file_is_left_out_and_tried_again_and_other_settings_are_refused(tmp_path):
    folder, out = fill(tmp_path / "caps", 2), tmp_path / "out"
    (folder / "00a.pcap").write_bytes(b"no capture at all")
    run(folder, "--out", out, status=1)
    assert len(tables(out, "files")) == 2
    once = tree(out)
    assert "00a.pcap: not analysed" in run(folder, "--out", out, status=1).stderr
    assert tree(out) == once
    done = run(folder, "--out", out, "--bins", 50, status=2)
    assert "was made with --bins 100; hint: the same here, or another folder" in done.stderr


def test_what_cannot_be_written_is_one_line_and_the_same_command_goes_on(tmp_path):
    """Files may not grow beyond 4 kB: as on a full disk, writing fails in the middle of a part."""
    folder = fill(tmp_path / "caps", 4)
    out = tmp_path / "out"
    words = ["prlimit", "--fsize=4096", *command(folder, "--out", out, "--batch", "1", "--workers", "2")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (3, 1), done.stderr
    assert done.stderr.startswith(f"tandem-server: {out}")
    assert "hint: make room" in done.stderr
    run(folder, "--out", out, "--batch", 1)
    run(folder, "--out", tmp_path / "whole", "--batch", 1)
    assert tree(out) == tree(tmp_path / "whole")


def test_row_groups_of_several_captures(tmp_path, monkeypatch):
    """Each capture is a row group of its own when few rows are held: names stay those of their rows."""
    folder = fill(tmp_path / "caps", 4)
    monkeypatch.setattr("tandem_server.analysis.traces.tables.ROWS_AT_ONCE", 1)
    process_batch(sorted(map(str, folder.rglob("*.pcap"))), 100_000_000, True, tmp_path / "out")
    monkeypatch.undo()
    run(folder, "--out", tmp_path / "whole", "--packets")
    for table in ("files", "connections", "bins", "events", "packets"):
        assert sorted(map(str, tables(tmp_path / "out", table))) == sorted(map(str, tables(tmp_path / "whole", table)))
    (path,) = (tmp_path / "out" / "bins").glob("*.parquet")
    assert pq.read_metadata(path).num_row_groups > 3
