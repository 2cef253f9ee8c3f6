"""Captures in a bucket: the server's pass fetches them for the time they are read, on a Dask cluster too."""

import hashlib
import json
import shutil
import time
from pathlib import Path

import dask_here
import folders
import pytest
from test_analyse_dask import until_workers
from test_traces_analysed import NO_CAPTURE, PLAIN, RUN, Server, halves, store_of

from support.s3_bucket import _keys, moto, s3  # noqa: F401  (fixtures)
from support.serve_on_loopback import working

pytest.importorskip("pyarrow", reason="no pyarrow; pip install -r requirements/lock.txt")

from tandem_server.cli.main import main
from tandem_server.uploads.s3 import TraceBucket


@pytest.fixture
def filled(tmp_path, moto, s3, private_influx):  # noqa: F811  (the fixtures)
    """A server whose captures are in a bucket; a run of two paths, one that is alone, one that is none."""
    url = f"http://127.0.0.1:{moto}"
    assert s3.head_bucket(Bucket="traces-here")
    store = TraceBucket("traces-here", "kit", url, "eu-north-1")
    server = Server(tmp_path, store=store)
    a, b = halves()
    server.promise(RUN, {f"{RUN}-a.pcap": a, f"{RUN}-b.pcap": b})
    server.come(a, f"{RUN}-a.pcap")
    server.come(b, f"{RUN}-b.pcap")
    server.come(PLAIN, "one-a.pcap", None)
    server.come(NO_CAPTURE, "two-a.pcap", None)
    (tmp_path / "server.toml").write_text(
        store_of(private_influx)
        + f'[traces]\nreserve_bytes = 0\n[traces.s3]\nbucket = "traces-here"\nprefix = "kit"\nendpoint_url = "{url}"\n'
    )
    yield server
    server.registry.close()


def made(server):
    """What was made: captures by what was read together, and a sum of each table's rows."""
    tables = server.folder / "traces/probe-1/.tables"
    assert not (tables / ".fetched").exists()
    files = [[Path(one).name for one in row["file"].split(" + ")] for row in folders.tables(tables, "files")]
    rows = [{**row, "file": Path(row["file"]).name} for row in folders.tables(tables, "bins")]
    return sorted(files), hashlib.sha256(json.dumps(sorted(map(str, rows))).encode()).hexdigest()


def test_the_worker_and_a_cluster_make_the_same_of_a_bucket(filled, tmp_path, capsys):
    config = tmp_path / "server.toml"
    fetched = filled.folder / "traces/probe-1/.tables/.fetched"
    with working(tmp_path):
        # pytest's own timeout ends a wait for nothing
        while ("waiting", None) in filled.states().values() or fetched.exists():
            time.sleep(0.05)
    states = {name: one[0] for name, one in filled.states().items()}
    assert states.pop("captures/two-a.pcap") == "failed"
    assert set(states.values()) == {"analysed"}
    files, rows = made(filled)
    assert files == [["one-a.pcap.gz"], [f"{RUN}-a.pcap.gz", f"{RUN}-b.pcap.gz"]]
    pytest.importorskip("distributed", reason="no distributed; pip install -r requirements/lock.txt")
    shutil.rmtree(filled.folder / "traces/probe-1/.tables")
    filled.registry.trace_tables.again()
    (tmp_path / "cluster").mkdir()
    with dask_here.started(tmp_path / "cluster", workers=1) as cluster:
        until_workers(cluster, 1)
        assert main(["traces", "analyse", "--dask", cluster.address, "--json", "--config", str(config)]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["analysed"], [one["name"] for one in told["failed"]]) == (3, ["captures/two-a.pcap"])
    assert made(filled) == (files, rows)
