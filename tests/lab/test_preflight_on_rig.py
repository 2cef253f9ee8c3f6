"""The check before a kit is handed out, on the bench: a good kit passes; each fault fails its own line and no other.

Faults that have nothing to do with each other are made at once: then each must still fail its own line and no other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from preflight_kit import PreflightKit, failed, preflight_kit, shown

from tandem_bench.run.programs import Owner

pytestmark = [pytest.mark.lab, pytest.mark.slow]

QUICK = ("--wait", "20")
PATIENT = ("--wait", "60")


@pytest.fixture(scope="module")
def kit(influxd: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PreflightKit]:
    with preflight_kit(tmp_path_factory.mktemp("preflight"), influxd) as made:
        yield made


def test_a_good_kit_is_ready_and_its_page_names_nobody(kit: PreflightKit) -> None:
    page = kit.kit.folder / "page.html"
    page.parent.chmod(0o777)
    status, told = kit.check(*PATIENT, "--page", str(page))
    assert (status, failed(told), failed(told, "follows")) == (0, set(), set()), shown(told)
    # The rig's collector is whoever called; VLC refuses root.
    assert failed(told, "skipped") == ({"player"} if Owner.of_caller().uid == 0 else set())
    assert told["ok"] is True
    text = page.read_text()
    assert "probe-1 is ready" in text
    assert re.search(r"[0-9]{14}|[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}|51\.89|8\.47", text) is None
    assert "http" not in text
    spent = kit.kit.status()["spent_today_bytes"]
    assert max(spent[path] for path in "ab") < 1_500_000, spent


def test_a_network_with_three_faults(kit: PreflightKit) -> None:
    kit.serve_anew(("[registry]", '[collector]\nversion = "9.9.9"\n[registry]'))
    with kit.interface_down("a"), kit.options_stripped("b"):
        status, told = kit.check(*QUICK)
    kit.serve_anew(('[collector]\nversion = "9.9.9"\n', ""))
    assert (status, failed(told)) == (1, {"path:a", "mptcp:b", "version"}), shown(told)
    assert failed(told, "follows") == {"data:a", "mptcp:a"}


def test_without_a_collector_all_is_looked_at_all_the_same(kit: PreflightKit) -> None:
    """Also after a check that was killed: its folder goes with the next one, whose collector gives the paths their routes, rules and
    endpoints anew and takes them all away at its end. And what only a configuration can make fail: another SIM than named, a plan used
    up, a disk without room."""
    kit.spent("b")
    with kit.without_collector():
        last = json.loads(kit.kit.server("probe", "last", "probe-1", "--json"))
        foretold = ("in order", "voltage", "plan", "disk", "hot")
        assert [why for why in last["reasons"] if any(word in why for word in foretold)] == [], last
        assert set(last["radio"]) == {"a", "b"}
        assert kit.kit.server("probe", "list").startswith("probe-1 ")
        before = {file: file.stat().st_mtime_ns for file in kit.kit.probe.rglob("*")}
        status, told = kit.check(*PATIENT, "--accept", "collector")
        assert (status, failed(told), failed(told, "accepted")) == (0, set(), {"collector"}), shown(told)
        assert (kit.checks(), kit.ours_in_the_kernel()) == ([], 0)
        after = {file: file.stat().st_mtime_ns for file in kit.kit.probe.rglob("*")}
        assert after == before, "the probe's own folder was touched"
        text = (kit.kit.probe / "config.toml").read_text()
        disk = kit.disk
        for name in ("ca.pem", "token", "account.json"):
            (disk.folder / name).write_bytes((kit.kit.probe / name).read_bytes())
        edited = _with(text, "b", 'sim = "0123456789abcdef01234567"', "[path.plan]\nbytes = 1000")
        (disk.folder / "config.toml").write_text(edited)
        (disk.folder / "sim.secret").write_bytes(bytes(32))
        disk.fill(200_000)
        with kit.killed_check() as left:
            assert (kit.checks(), kit.ours_in_the_kernel() > 0) == ([left], True)
            assert "token" not in {file.name for file in left.rglob("*")}
        status, told = kit.check(*QUICK, config=disk.folder / "config.toml")
        assert (kit.checks(), kit.ours_in_the_kernel()) == ([], 0)
        assert (status, failed(told)) == (1, {"collector", "sim:b", "budget:b", "disk"}), shown(told)


def test_modems_a_receiver_and_a_supply_at_fault(kit: PreflightKit) -> None:
    """Last, since the firmware remembers until the next boot."""
    kit.kit.play("a", {"fault": "hang", "seconds": 3600})
    kit.kit.play("b", {"fault": "wrong_sim", "seconds": 3600, "how": "foreign"})
    kit.receiver.close()
    with kit.weak_supply():
        status, told = kit.check(*QUICK)
    assert (status, failed(told)) == (1, {"modem:a", "registered:b", "gps", "power"}), shown(told)


def _with(text: str, path: str, sim: str, plan: str) -> str:
    """The configuration with a SIM and a plan for a path."""
    head, name, rest = text.partition(f'name = "{path}"\n')
    before, modem, after = rest.partition('driver = "auto"\n')
    return f"{head}{name}{before}{modem}{sim}\n\n{plan}\n{after}"
