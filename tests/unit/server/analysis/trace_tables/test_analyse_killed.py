"""A process that analyses is killed, really, by SIGKILL: the rest is analysed all the same, and only what kills it again has failed."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import killing
import pytest
from captures_server import ENVIRONMENT, PLAIN, RUN, A, B
from folders import fill, run, tables, tree

from support.serve_on_loopback import working
from tandem_server.analysis.traces import batch, processes
from tandem_server.cli.main import main

pytest.importorskip("pyarrow", reason="no pyarrow; pip install -r requirements/lock.txt")


@pytest.fixture
def kills(tmp_path, monkeypatch):
    """``kills(sort, name)``: which process is to be killed."""
    folder = tmp_path / "kills"
    folder.mkdir()
    monkeypatch.setenv("TANDEM_TEST_KILLS", str(folder))
    monkeypatch.setattr(batch, "process_batch", killing.process_batch)
    monkeypatch.syspath_prepend(str(Path(killing.__file__).parent))
    return lambda sort, name: (folder / sort).write_text(name)


def analyse(*words: object) -> int:
    return main(["analyse", *map(str, words)])


def test_killed_once_the_result_is_the_same(tmp_path, kills, capsys):
    """Once while it reads, once between tables and manifest: nothing of a killed process is left, nothing is there twice."""
    folder = fill(tmp_path / "caps", 6)
    run(folder, "--out", tmp_path / "whole", "--batch", 2)
    kills("once", "01.pcap")
    kills("written", "02.pcap")
    assert analyse(folder, "--out", tmp_path / "out", "--batch", 2, "--workers", 2, "--json") == 0
    told = capsys.readouterr()
    assert [Path(c["file"]).name for c in json.loads(told.out)] == [f"{number:02}.pcap" for number in range(6)]
    assert told.err.count("a process was killed, by lack of memory perhaps: its 2 captures again, alone\n") == 2
    assert told.err.count("at most 1 at once from here on; hint: --workers 1\n") == 1
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")


def test_the_capture_that_kills_is_named_and_tried_again_by_the_next_run(tmp_path, kills, capsys):
    folder = fill(tmp_path / "caps", 6)
    kills("always", "02.pcap")
    words = (folder, "--out", tmp_path / "out", "--batch", 3, "--workers", 2)
    assert analyse(*words) == 1
    assert f"{folder / '02.pcap'}: not analysed: {processes.KILLED}\n" in capsys.readouterr().err
    names = sorted(Path(row["file"]).name for row in tables(tmp_path / "out", "files"))
    assert names == ["00.pcap", "01.pcap", "03.pcap", "04.pcap", "05.pcap"]
    kept = tree(tmp_path / "out")
    (tmp_path / "kills" / "always").unlink()
    done = run(*words)
    assert "5 of 6 captures are in" in done.stderr
    assert kept.items() < tree(tmp_path / "out").items()
    assert len(tables(tmp_path / "out", "files")) == 6


def test_what_a_task_raises_is_raised_where_it_was_asked():
    with pytest.raises(ZeroDivisionError) as raised:
        list(processes.analysed([["a"], ["b"]], divided, 2, say=sys.stderr.write))
    assert "in divided" in str(raised.value.__cause__)


def divided(paths):
    return len(paths) / 0


def test_what_a_killed_pass_of_the_server_was_at_is_analysed_once(server, store, private_influx, tmp_path, capsys):
    """Killed between tables and manifest. Between the manifest and telling of it: test_traces_analysed.py."""
    server.halves(A, B, environment=ENVIRONMENT)
    server.come(PLAIN, "one-a.pcap", None)
    config = server.config(private_influx)
    kills = tmp_path / "kills"
    kills.mkdir()
    (kills / "pass_written").write_text(f"{B}.gz")  # the last name of those that are read together
    path = os.pathsep.join([str(Path(killing.__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "TANDEM_TEST_KILLS": str(kills), "PYTHONPATH": path}
    with subprocess.Popen([sys.executable, killing.__file__, str(config)], env=environment) as one:
        assert one.wait(240) == -9
    assert server.states()[f"captures/{A}"] == ("waiting", None)
    made = tmp_path / "traces/probe-1/.tables"
    assert list(made.glob("bins/*.parquet"))
    with working(tmp_path):
        while ("waiting", None) in server.states().values():  # pytest's own timeout ends a wait for nothing
            time.sleep(0.05)
    assert set(server.states().values()) == {("analysed", None)}
    files = [row["file"].rsplit("/", 1)[1] for row in tables(made, "files")]
    assert sorted(files) == ["one-a.pcap.gz", f"{B}.gz"]
    assert not list(made.rglob("*.tmp"))
    told = store.query('SELECT count("goodput_bytes") FROM "run_trace" WHERE "run" = $run', {"run": RUN})
    assert [one.rows[0][1] for one in told] == [3]  # two subflows and the connection
    assert main(["ledger", "--json", "--config", str(config)]) in (0, 1)
    totals = json.loads(capsys.readouterr().out)["totals"]
    assert (totals["analysed"], totals["analysis_failed"], totals["files_received"]) == (2, 0, 2)
