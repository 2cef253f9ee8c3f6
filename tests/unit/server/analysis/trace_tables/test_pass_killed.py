"""The server's pass over captures is killed, really, by SIGKILL: what it was at is analysed again, once, and the ledger says so."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import folders
import killing
import pytest
from test_traces_analysed import ENVIRONMENT, PLAIN, RUN, halves, server  # noqa: F401  (a fixture)

from support.serve_on_loopback import working

pytest.importorskip("pyarrow", reason="no pyarrow; pip install -r requirements/lock.txt")

from tandem_server.cli.main import main


@pytest.mark.parametrize("when", ["pass_written", pytest.param("pass_whole", marks=pytest.mark.exhaustive)])
def test_what_a_killed_pass_was_at_is_analysed_once(server, private_influx, tmp_path, capsys, when):  # noqa: F811
    """``pass_written``: its tables are there without a manifest, so they are made anew; ``pass_whole``: they count, and are not."""
    a, b = halves()
    server.promise(RUN, {f"{RUN}-a.pcap": a, f"{RUN}-b.pcap": b}, environment=ENVIRONMENT)
    server.come(a, f"{RUN}-a.pcap")
    server.come(b, f"{RUN}-b.pcap")
    server.come(PLAIN, "one-a.pcap", None)
    config = tmp_path / "server.toml"
    stores = f'[store]\nfolder = "{private_influx.folder}"\nport = {private_influx.port}\n[registry]\nfile = "registry.sqlite"\n'
    config.write_text(f'{stores}[traces]\nfolder = "traces"\nreserve_bytes = 0\n')
    kills = tmp_path / "kills"
    kills.mkdir()
    (kills / when).write_text(f"{RUN}-b.pcap.gz")  # the last name of those that are read together
    path = os.pathsep.join([str(Path(killing.__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "TANDEM_TEST_KILLS": str(kills), "PYTHONPATH": path}
    with subprocess.Popen([sys.executable, killing.__file__, str(config)], env=environment) as one:
        assert one.wait(240) == -9
    assert server.states()[f"captures/{RUN}-a.pcap"] == ("waiting", None)
    tables = tmp_path / "traces/probe-1/.tables"
    left = {path.name: path.stat().st_mtime_ns for path in tables.glob("bins/*.parquet")}
    assert left
    with working(tmp_path):
        while ("waiting", None) in server.states().values():  # pytest's own timeout ends a wait for nothing
            time.sleep(0.05)
    assert set(server.states().values()) == {("analysed", None)}
    files = [row["file"].rsplit("/", 1)[1] for row in folders.tables(tables, "files")]
    assert sorted(files) == ["one-a.pcap.gz", f"{RUN}-b.pcap.gz"]
    kept = {name: changed for name, changed in left.items() if (tables / "bins" / name).stat().st_mtime_ns == changed}
    assert bool(kept) == (when == "pass_whole")
    assert not list(tables.rglob("*.tmp"))
    with private_influx.client() as store:
        told = store.query('SELECT count("goodput_bytes") FROM "run_trace" WHERE "run" = $run', {"run": RUN})
        assert [one.rows[0][1] for one in told] == [3]  # two subflows and the connection
        store.query('DROP SERIES FROM "run_trace"')
    assert main(["ledger", "--json", "--config", str(config)]) in (0, 1)
    totals = json.loads(capsys.readouterr().out)["totals"]
    assert (totals["analysed"], totals["analysis_failed"], totals["files_received"]) == (2, 0, 2)
