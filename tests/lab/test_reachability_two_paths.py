"""A survey over two paths with the real kernel: own DNS servers that differ by path, addresses that answer, reset and stay silent."""

from __future__ import annotations

import csv
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from names_server import serving

from support.experiment_process import Run, parameters, run, server_of
from support.two_paths import Lab, await_true, lab, lab_with

pytestmark = lab_with("nft")
DNS = {"a": "10.71.1.2", "b": "10.71.2.2"}
OFFSET = {"a": 0, "b": 100}


@contextmanager
def surveyed() -> Iterator[Lab]:
    """Path a's resolver gives n1 → 192.88.99.2, path b's → .102. Of 192.88.99.0/24 all answer but: .3 (silent), .4 (resets), and .103,
    silent over path a alone."""
    with lab() as made:
        made.server.run("ip route add local 192.88.99.0/24 dev lo")
        made.server.run(
            "nft add table ip t && nft 'add chain ip t i { type filter hook input priority 0; }'"
            " && nft add rule ip t i ip daddr 192.88.99.3 tcp dport 443 drop"
            " && nft add rule ip t i ip daddr 192.88.99.4 tcp dport 443 reject with tcp reset"
            " && nft add rule ip t i ip daddr 192.88.99.103 iifname tmp5-as drop"
        )
        for name, number in (("a", 1), ("b", 2)):
            made.probe.run(f"ip route add default via 10.71.{number}.2 dev tmp5-{name} metric {number}")
        with serving(made.server.enter, *(f"{DNS[p]}+{OFFSET[p]}" for p in "ab")):
            yield made


class Nowhere:
    """No server has a part in it."""

    control_port = measurement_port = 1


def wanted(folder: Path, names: list[str], **more: Any) -> dict[str, Any]:
    (folder / "list.csv").write_text("".join(f"{i},{name}\n" for i, name in enumerate(names, start=1)))
    own = {"names": str(folder / "list.csv"), "list_id": "BENCH", "folder": str(folder / "run")}
    own |= {"resolvers": {p: [DNS[p]] for p in "ab"}, "ping_timeout_s": 2, "dns_timeout_s": 1.5, "dns_tries": 2}
    return parameters(server_of(folder, Nowhere()), **{**own, "ping_hz": 500, "pings": 3, **more})


def survey(made: Lab, given: dict[str, Any], status: int = 0) -> dict[str, Any]:
    last = run(made, "reachability", given)
    assert last["status"] == status, last["said"]
    return last


def way(result: dict[str, Any], name: str) -> dict[str, Any]:
    return next(w for w in result["ways"] if w["way"] == name)


def test_the_four_ways_with_what_answers_resets_and_is_silent(tmp_path):
    names = [f"{name}.example" for name in ("n1", "n2", "n3", "nx", "mute1", "private1", "sub.left")]
    (tmp_path / "deny").write_text("left.example\n")
    with surveyed() as made:
        last = survey(made, wanted(tmp_path, names, deny=str(tmp_path / "deny")))
    result = last["result"]
    assert last["failure"] is None
    assert result["names"] == {"done": 7, "denied": 1}
    found = result["resolution"]["a"]
    # n1, n2, n3 and the private one; nothing has an AAAA
    assert (found["names"], found["resolved"], found["resolved_aaaa"]) == (6, 4, 0)
    assert found["status_a"] == {"ok": 4, "nxdomain": 1, "timeout": 1}
    assert found["addresses_not_pinged"] == {"private": 1}
    # only the private address is the same from both
    assert (result["overlap"][0]["addresses_both"], result["overlap"][0]["addresses_either"]) == (1, 7)
    # resolved over a: .2 answers, .3 (n2) is silent, .4 (n3) resets; over b: .102, .103, .104, of which .103 not over a
    aa, ab, ba, bb = (way(result, w) for w in ("a/a", "a/b", "b/a", "b/b"))
    assert (aa["addresses"], aa["unresponsive"], aa["only_resets"], aa["pings"]) == (3, 1, 1, 9)
    assert (ba["unresponsive"], ba["only_resets"]) == (1, 1)
    assert (ab["addresses"], ab["unresponsive"]) == (3, 1)
    assert (bb["addresses"], bb["unresponsive"]) == (3, 0)
    assert bb["unresponsive_share"] == 0.0
    assert bb["address_rtt_ms"]["p50"] > 0
    assert result["resolvers"]["b"] == {"addresses": ["10.71.2.2"], "source": "parameter"}
    assert result["list"]["id"] == "BENCH"
    assert result["bytes_by_path"]["a"]["received"] > 0
    # a SYN is at least 60 bytes on the wire, and 18 of them went out over each path
    assert result["interface_bytes_by_path"]["a"]["sent"] > 18 * 60
    rows = list(csv.DictReader((tmp_path / "run" / "reachability-rows.csv").read_text().splitlines()))
    assert len(rows) == 12
    assert {r["rtt_ms_mean"] for r in rows if r["address"] == "192.88.99.3"} == {""}


def test_a_survey_that_was_ended_goes_on_where_it_was(tmp_path):
    given = wanted(tmp_path, [f"n{i}.example" for i in range(5, 45)], batch=10, ping_hz=60, seed=3)
    with surveyed() as made:
        running = Run("reachability", given, made.probe.enter)
        journal = tmp_path / "run" / "reachability.jsonl"
        await_true(lambda: journal.exists() and len(journal.read_bytes().splitlines()) > 10, 60, "the first batch")
        running.process.send_signal(signal.SIGTERM)
        cut = running.end()
        assert cut["status"] == 1
        assert cut["failure"] == {"reason": "stopped", "retry": False}
        assert 10 <= cut["result"]["names"]["done"] < 40
        whole = survey(made, {**given, "ping_hz": 500})
    assert whole["result"]["resumed_names"] == cut["result"]["names"]["done"]
    assert whole["result"]["names"]["done"] == 40
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert sorted(r["name"] for r in lines[1:]) == sorted(f"n{i}.example" for i in range(5, 45))


def test_a_path_that_is_down_sends_nothing_and_is_not_called_unresponsive(tmp_path):
    with surveyed() as made:
        made.probe.run("ip link set tmp5-b down && ip addr flush dev tmp5-b")
        last = survey(made, wanted(tmp_path, ["n1.example", "n5.example"]))
    result = last["result"]
    assert result["resolution"]["b"]["status_a"] == {"not sent": 2}
    assert (way(result, "b/a")["addresses"], way(result, "b/a")["not_sent"]) == (0, 2)
    assert way(result, "b/a")["unresponsive_share"] is None
    assert way(result, "a/a")["unresponsive_share"] == 0.0


def test_resolvers_that_never_answer_are_a_failure_with_tables(tmp_path):
    with surveyed() as made:
        last = survey(made, wanted(tmp_path, ["n1.example"], resolvers={"a": ["10.71.1.9"], "b": ["10.71.2.9"]}), 1)
    assert last["failure"] == {"reason": "no name was resolved over any path", "retry": True}
    assert last["result"]["resolution"]["a"]["resolved"] == 0


def test_pings_keep_to_their_rate(tmp_path):
    """60 pings at 40 a second over each path take 1.5 s and no less."""
    with surveyed() as made:
        last = survey(made, wanted(tmp_path, [f"n{i}.example" for i in range(5, 15)], ping_hz=40))
    assert last["result"]["duration_s"] > 59 / 40
