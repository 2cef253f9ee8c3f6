"""A short rehearsal arrives whole, and the ledger says so; then a run's records, a file and a manifest are taken away: it names each."""

import io
import sqlite3
import subprocess
import sys
from typing import Any

import pytest

from support.offers import offer_of
from support.running_kit import PROBE, RunningKit, awaited
from tandem_server.registry import Registry

pytestmark = [pytest.mark.lab, pytest.mark.slow]

TAKEN = """
import pathlib, sys
from tandem_server.store import Influx
from tandem_server.store.private import account_password
with Influx("http://127.0.0.1:8086", "tandem", "tandem", account_password(pathlib.Path(sys.argv[1]))) as store:
    store.query('DROP SERIES FROM "subflow", "connection" WHERE "run" = $run AND "end" = \\'probe\\''.replace("$run", f"'{sys.argv[2]}'"))
"""


def settled(kit: RunningKit) -> dict[str, Any] | None:
    """The spool's account once all up to the last run is settled and told of."""
    _, told = kit.ledger("--no-files")
    (spool,) = told["spools"]
    whole = all(row["state"] == "complete" for row in told["runs"]) and len(told["runs"]) == 4
    return spool if whole and spool["unexplained"] == 0 and spool["settled"] else None


def one_sum(kit: RunningKit) -> bool:
    """Whether each record that the spool made is in one of the ledger's counts."""
    (spool,) = kit.ledger("--no-files")[1]["spools"]
    return bool(
        spool["made"] == sum(spool[key] for key in ("arrived", "rejected", "dropped", "waiting", "unexplained"))
    )


def receive(registry: Registry, kit: RunningKit, run: str, name: str) -> None:
    """A capture of the probe, as the gateway enters it when its last chunk is in the store."""
    content = (kit.probe / name).read_bytes()
    offer = offer_of(io.BytesIO(content), name, run, "identity")
    registry.pending_uploads.offer(PROBE, offer, 99)
    registry.pending_uploads.finish(PROBE, offer, name, "identity", len(content))


def test_what_is_taken_away_is_named(kit: RunningKit) -> None:
    runs = [
        run
        for path in ("a", "b")
        for run in kit.measured("--kind", "tcp", "--path", path, "--seconds", "1")
        + kit.measured("--kind", "mptcp", "--path", path, "--seconds", "1")
    ]
    whole = awaited("all four runs arrive, and the spool tells that they are settled", lambda: settled(kit), 120)
    assert (whole["rejected"], whole["dropped"], whole["missing"], whole["twice"]) == (0, 0, [], 0)
    status, told = kit.ledger()
    assert status == 1  # captures are promised, and none is here yet
    assert {lack["why"] for row in told["runs"] for lack in row["missing"]} == {"not_received"}
    with Registry(kit.folder / "server" / "registry.sqlite") as registry:
        for run in runs:
            for file in run["files"]:
                receive(registry, kit, run["id"], file["name"])
    awaited("nothing is missing", lambda: kit.ledger()[0] == 0, 60)
    _, told = kit.ledger()
    assert told["complete"] is True
    assert told["totals"]["by_state"] == {"complete": 4}
    assert told["totals"]["files_received"] == sum(len(run["files"]) for run in runs) > 4
    assert told["probes"][0]["state"] == "measuring"

    no_records, no_file, no_manifest, whole_run = runs
    taken = no_records["records"]["subflow"] + no_records["records"]["connection"]
    argv = [sys.executable, "-c", TAKEN, str(kit.folder / "server" / "influxdb"), no_records["id"]]
    subprocess.run(kit.rig.command("server", argv), check=True, capture_output=True)
    with sqlite3.connect(kit.folder / "server" / "registry.sqlite") as file:
        lost = no_file["files"][0]["name"]
        file.execute("DELETE FROM traces WHERE name = ?", (lost,))
        for statement in ("DELETE FROM complete_runs WHERE run = ?", "DELETE FROM runs WHERE id = ?"):
            file.execute(statement, (no_manifest["id"],))
        # Its session ended an hour ago: no manifest is on its way any more.
        hour = "UPDATE sessions SET opened_utc_ns = opened_utc_ns - ?1, ended_utc_ns = ended_utc_ns - ?1 WHERE run = ?2"
        file.execute(hour, (3600 * 10**9, no_manifest["id"]))

    assert kit.ledger()[0] == 1  # the manifest; the others were found complete and are not counted again unasked

    def no_manifest_is_left() -> tuple[int, dict[str, Any]] | None:
        """Until the spool has told once more: its last account may be from before it sent the last manifest."""
        found = kit.ledger("--recount", "--incomplete")
        waiting = [lack for row in found[1]["runs"] for lack in row["missing"] if lack["why"] == "not_sent"]
        return None if waiting else found

    status, told = awaited("the spool tells that it holds no manifest", no_manifest_is_left, 120)
    named = {row["id"]: [(k["what"], k["name"], k["count"], k["why"]) for k in row["missing"]] for row in told["runs"]}
    records = no_records["records"]
    assert status == 1
    assert {run: sorted(lacks) for run, lacks in named.items()} == {
        no_records["id"]: [
            ("records", "connection", records["connection"], "unexplained"),
            ("records", "subflow", records["subflow"], "unexplained"),
        ],
        no_file["id"]: [("file", lost, 1, "not_received")],
        no_manifest["id"]: [("manifest", no_manifest["id"], 1, "cut_off")],
    }
    assert told["totals"]["by_state"] == {"complete": 1, "missing": 2, "waiting": 1}
    assert whole_run["id"] not in named
    (spool,) = told["spools"]
    assert spool["unexplained"] == taken == sum(last - first + 1 for first, last in spool["missing"])
    # What it made is told by itself, once in a while; what arrived is counted: while it goes on measuring the second may be ahead.
    awaited("what the spool tells of and what is here make one sum", lambda: one_sum(kit), 60)
    # The files of the run without a manifest are here, and nobody promised them.
    assert {row["run"] for row in told["unpromised"]} == {no_manifest["id"]}
