"""``tandem-server campaign export`` of captures' tables: enough for a report, named as they lie, each capture once."""

import json
import shutil
import time
from dataclasses import replace

import folders
import numpy as np
import pytest
from captures_server import ENVIRONMENT, HALVES, NO_CAPTURE, RUN, A, B

from support.captures import EPOCH
from tandem_server.analysis.captures import of_campaign, read
from tandem_server.analysis.evaluate import evaluate
from tandem_server.analysis.folder import load
from tandem_server.analysis.records import Clock
from tandem_server.analysis.traces import manifest
from tandem_server.cli.main import main
from tandem_server.derived.tables import WAIT_NS

TIMES = {"started_utc_ns": EPOCH, "ended_utc_ns": EPOCH + 10**9, "format": "tandem-run/1"}
FILE = "probe/probe-1/captures/{}-{}.pcap"
OTHER = "run-aaaaaaaaaaaa"


@pytest.fixture
def exported(server, private_influx, capsys):
    """Exports the server's runs of no campaign into ``out``; its status, and what is missing."""
    config = server.config(private_influx)

    def export(out, *more, name="--no-campaign"):
        status = main(["campaign", "export", name, "--out", str(out), "--config", str(config), "--json", *more])
        told = capsys.readouterr()
        return status, json.loads(told.out) if told.out else None, told.err

    return export


def figures(folder):
    """What a report's figures are drawn of: bins by run, and each subflow's by the radio's join."""
    campaign = load(folder)
    packets = of_campaign(replace(evaluate(campaign, "no database", set()), clock=Clock(EPOCH)))
    assert packets is not None
    bins = packets.bins
    _, flows_of, binned, _ = read(
        folder / "traces", sorted(manifest.read(folder / "traces")), 10**8, campaign.manifests, campaign.captures, 0
    )
    flows = sorted((flow.run, flow.path, flow.start_ns) for flow in flows_of)
    flight = np.nansum([np.nansum(one.in_flight_bytes) for one in bins if one.path is not None])
    queue = [one.reorder_queue_bytes.tolist() for one in bins if one.path is None]
    return flows, float(flight), str(queue), sorted(binned.goodput_bytes.tolist())


def test_tables_alone_draw_what_the_captures_draw(server, exported, tmp_path):
    server.halves(A, B, environment=ENVIRONMENT, **TIMES)
    status, told, err = exported(tmp_path / "early", "--tables")
    assert (status, told["written"]["tables"]) == (1, 0)
    assert "probe-1: of 2 captures 2 were not analysed yet" in err
    assert server.tabling().turn(time.time_ns()).analysed == 2
    tables, captures = tmp_path / "tables", tmp_path / "captures"
    assert exported(tables, "--tables")[1]["written"]["tables"] == 1
    assert not (tables / "probe/probe-1/captures").exists()
    (part,) = manifest.read(tables / "traces").values()
    assert part.files[0].file == " + ".join(FILE.format(RUN, path) for path in "ab")
    assert {row["file"] for row in folders.tables(tables / "traces", "bins")} == {part.files[0].file}
    assert exported(captures, "--traces")[1]["written"]["files"] == 2
    shutil.rmtree(captures / "traces")
    # Together, as the server does: alone, the second path's would count what the first had carried before.
    own = [captures / FILE.format(RUN, path) for path in "ab"]
    folders.run(*own, "--together", "--out", captures / "traces")
    assert figures(tables) == figures(captures)
    assert [(run, path) for run, path, _ in figures(tables)[0]] == [(RUN, "a"), (RUN, "b")]
    assert json.loads((tables / "campaign.json").read_text())["export"]["name"] == ""
    assert exported(tables, "--tables")[1]["written"] == {"manifests": 0, "files": 0, "tables": 0, "records": 0}


def test_what_came_late_takes_the_place_of_what_was_there(server, exported, tmp_path):
    server.halves(A, environment=ENVIRONMENT, **TIMES)
    server.promise(OTHER, {f"{OTHER}-a.pcap": NO_CAPTURE}, **{**TIMES, "campaign": {"name": "c"}})
    server.come(NO_CAPTURE, f"{OTHER}-a.pcap", OTHER)
    assert server.tabling().turn(time.time_ns() + WAIT_NS).analysed == 1
    out = tmp_path / "out"
    assert exported(out, "--tables")[1]["written"]["tables"] == 1
    (out / "traces/bins/half.tmp").write_bytes(b"half")  # as an export that was killed leaves it
    server.come(HALVES[B], B)
    assert server.tabling().turn(time.time_ns()).analysed == 2
    assert exported(out, "--tables")[1]["written"]["tables"] == 1
    assert [row["file"].count(" + ") for row in folders.tables(out / "traces", "files")] == [1]
    assert not (out / "traces/bins/half.tmp").exists()
    assert [m["id"] for m in load(out).manifests] == [RUN]
    status, _, err = exported(tmp_path / "other", "--tables", name="c")
    assert (status, "probe-1: of 1 captures 1 could not be analysed" in err) == (1, True)
    assert [m["id"] for m in load(tmp_path / "other").manifests] == [OTHER]
    assert exported(tmp_path / "none", name="nobody")[2].count("--no-campaign for runs of none") == 1
