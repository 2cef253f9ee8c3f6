"""``--dask``: a scheduler and two workers, started here, give what the process pool gives; a worker that dies, addresses that are none."""

import json
import os
import re
import socket
from pathlib import Path

import dask_here
import killing
import pytest
from folders import fill, run, tables, tree

from tandem_server.analysis.traces import batch
from tandem_server.cli.main import main

pytest.importorskip("pyarrow", reason="no pyarrow; pip install -r requirements/lock.txt")
pytest.importorskip("distributed", reason="no distributed; pip install -r requirements/lock.txt")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Captures, and the folder that one process makes of them, as a pool of them does (test_analyse_parquet.py)."""
    place = tmp_path_factory.mktemp("made")
    folder = fill(place / "caps", 6)
    shown = run(folder, "--out", place / "whole", "--batch", 2, "--json")
    return folder, tree(place / "whole"), shown.stdout


@pytest.fixture(scope="module")
def kills(tmp_path_factory):
    return tmp_path_factory.mktemp("kills")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, kills):
    """Two workers; whoever kills one starts another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TANDEM_TEST_KILLS", str(kills))
        with dask_here.started(tmp_path_factory.mktemp("cluster"), workers=2) as cluster:
            yield cluster


def test_the_same_bytes_and_words_as_the_process_pool_gives_and_it_goes_on(made, cluster, tmp_path, monkeypatch):
    """Captures named from the folder one is in, which is not the workers'; two are there already from a run on this machine."""
    folder, whole, shown = made
    out = tmp_path / "out"
    run(folder / "00.pcap", folder / "01.pcap", "--out", out, "--batch", 2)
    monkeypatch.chdir(folder)
    words = (".", "--out", os.path.relpath(out), "--batch", 2, "--json", "--dask", cluster.address)
    done = run(*words)
    assert done.stderr == f"tandem-server analyse: 2 of 6 captures are in {os.path.relpath(out)} already\n"
    assert json.loads(done.stdout) == [
        {**connection, "file": os.path.relpath(connection["file"])}
        for connection in json.loads(shown)
        if Path(connection["file"]).name not in ("00.pcap", "01.pcap")
    ]
    assert tree(out) == whole


def test_a_worker_that_dies_in_the_middle_of_a_batch(made, cluster, kills, tmp_path, monkeypatch, capsys):
    """The other one gets the batch; what the dead one had put in place is not there twice, nor are its drafts."""
    folder, whole, _ = made
    monkeypatch.setattr(batch, "process_batch", killing.process_batch)
    (kills / "written").write_text("03.pcap")
    words = (folder, "--out", tmp_path / "out", "--batch", 2, "--dask", cluster.address)
    try:
        assert main(["analyse", *map(str, words)]) == 0
        dask_here.until(lambda: cluster.alive() == 1, cluster.scheduler)
        assert list(kills.iterdir()) == []
        assert tree(tmp_path / "out") == whole
        assert "not analysed" not in capsys.readouterr().err
    finally:
        cluster.grow(1)


def test_workers_that_do_not_see_the_folder(made, cluster, tmp_path, monkeypatch, capsys):
    """As on a machine that does not share it: the lock, by which they know it, has another name for them."""
    folder, *_ = made
    monkeypatch.setattr("tandem_server.analysis.traces.manifest.LOCK", "of-another-name")
    words = (folder, "--out", tmp_path / "out", "--dask", cluster.address)
    assert main(["analyse", *map(str, words)]) == 3
    told = capsys.readouterr().err
    assert re.fullmatch(
        rf"tandem-server: Dask worker tcp://127.0.0.1:\d+: {tmp_path}/out is not there; hint: captures and --out in folders"
        r" that all machines share\n",
        told,
    )
    assert tables(tmp_path / "out", "files") == []


def test_workers_that_are_not_there_die_all_and_come_again_and_a_scheduler_that_is_gone(
    made, kills, tmp_path, monkeypatch, capsys
):
    """A cluster that gives no batch to a second worker: it is taken apart; its first capture kills again, then nobody is left."""
    folder, whole, _ = made
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    monkeypatch.setenv("TANDEM_TEST_KILLS", str(kills))
    monkeypatch.setattr("tandem_server.analysis.traces.dask_cluster.PATIENCE_S", 0)
    monkeypatch.setattr(batch, "process_batch", killing.process_batch)
    with dask_here.started(tmp_path / "cluster", workers=0) as cluster:
        words = ["analyse", str(folder), "--out", str(tmp_path / "out"), "--batch", "2", "--dask", cluster.address]
        assert main(words) == 3
        assert capsys.readouterr().err == (
            f"tandem-server: --dask {cluster.address}: no worker is there; hint: on each machine `dask worker {cluster.address}`\n"
        )
        cluster.grow(2)
        (kills / "always").write_text("04.pcap")
        assert main(words) == 3
        assert capsys.readouterr().err.splitlines()[-2:] == [
            "tandem-server analyse: workers died of a batch: its 2 captures again, each by itself",
            "tandem-server: no Dask worker was left for 0 s; hint: start workers, call it again: it goes on",
        ]
        dask_here.until(lambda: cluster.alive() == 0, cluster.scheduler)
        (kills / "always").unlink()
        cluster.grow(1)
        assert main(words) == 0
        assert "4 of 6 captures are in" in capsys.readouterr().err
        assert tree(tmp_path / "out") == whole
    done = run(folder, "--dask", cluster.address, "--out", tmp_path / "none", status=2)
    assert done.stderr == (
        f"tandem-server: --dask {cluster.address}: no Dask scheduler answers there: Connection refused;"
        " hint: its address as `dask scheduler` tells it, tcp://HOST:8786\n"
    )
    assert not (tmp_path / "none").exists()


def test_what_is_no_address_or_says_nothing(made, capsys, monkeypatch):
    monkeypatch.setattr("tandem_server.analysis.traces.dask_cluster.ANSWERS_WITHIN_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        silent_one, wrapped = f"tcp://127.0.0.1:{port}", f"tcp://127.0.0.1:{port + 65536}"
        for address in ("", "tcp://", "nonsense://127.0.0.1:1", wrapped, silent_one):
            assert main(["analyse", str(made[0]), "--dask", address]) == 2
            told = capsys.readouterr().err
            assert told.startswith(f"tandem-server: --dask {address}: no Dask scheduler answers there: ")
            assert told.count("\n") == 1
            assert address != wrapped or "is no port" in told
