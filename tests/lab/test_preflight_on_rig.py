"""The check before a kit is handed out, on the bench: a good kit passes; each fault fails its own line and no other.

Faults that have nothing to do with each other are made at once: then each must still fail its own line and no other.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator

import pytest
from kit_on_rig import find_influxd
from preflight_kit import PreflightKit, failed, preflight_kit, shown

pytestmark = [pytest.mark.lab, pytest.mark.slow]

QUICK = ("--wait", "8")
PATIENT = ("--wait", "60")


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PreflightKit]:
    influxd = find_influxd()
    if influxd is None:
        pytest.skip("no influxd; ./kit setup takes it out of the distribution's package")
    with preflight_kit(tmp_path_factory.mktemp("preflight"), influxd) as made:
        yield made


def test_a_good_kit_is_ready_and_its_page_names_nobody(kit: PreflightKit) -> None:
    page = kit.kit.folder / "page.html"
    page.parent.chmod(0o777)
    status, told = kit.check(*PATIENT, "--page", str(page))
    assert (status, failed(told), failed(told, "follows")) == (0, set(), set()), shown(told)
    assert failed(told, "skipped") == {"budget:a", "budget:b"}
    assert told["ok"] is True
    text = page.read_text()
    assert "probe-1 is ready" in text
    assert re.search(r"[0-9]{14}|[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}|51\.89|8\.47", text) is None
    assert "http" not in text
    spent = kit.kit.status()["spent_today_bytes"]
    assert max(spent[path] for path in "ab") < 1_500_000, spent


def test_a_hung_modem_and_a_foreign_sim(kit: PreflightKit) -> None:
    kit.kit.play("a", {"fault": "hang", "seconds": 45})
    kit.kit.play("b", {"fault": "wrong_sim", "seconds": 45, "how": "foreign"})
    status, told = kit.check(*QUICK)
    assert (status, failed(told)) == (1, {"modem:a", "registered:b"}), shown(told)
    kit.mended()


def test_a_modem_unplugged_a_sim_without_its_pin_and_another_version(kit: PreflightKit) -> None:
    kit.serve_anew(("[registry]", '[collector]\nversion = "9.9.9"\n[registry]'))
    kit.kit.play("a", {"fault": "wrong_sim", "seconds": 45, "how": "pin"})
    kit.kit.play("b", {"fault": "disappear", "seconds": 45})
    status, told = kit.check(*QUICK)
    kit.serve_anew(('[collector]\nversion = "9.9.9"\n', ""))
    assert (status, failed(told)) == (1, {"sim:a", "modem:b", "version"}), shown(told)
    kit.mended()


def test_an_interface_down_and_an_operator_that_strips_the_options(kit: PreflightKit) -> None:
    with kit.interface_down("a"), kit.options_stripped("b"):
        status, told = kit.check(*QUICK)
    assert (status, failed(told)) == (1, {"path:a", "mptcp:b"}), shown(told)
    assert failed(told, "follows") == {"data:a", "mptcp:a"}


def test_a_network_that_brings_nothing_and_no_gateway(kit: PreflightKit) -> None:
    with kit.nothing_passes("b"), kit.no_gateway():
        status, told = kit.check(*QUICK)
    assert (status, failed(told)) == (1, {"data:b", "server"}), shown(told)
    assert {"token", "version", "mptcp:b"} <= failed(told, "follows")


def test_no_endpoint(kit: PreflightKit) -> None:
    with kit.no_endpoint():
        status, told = kit.check(*QUICK)
    assert (status, failed(told)) == (1, {"server"}), shown(told)
    assert failed(told, "follows") == {f"{line}:{path}" for line in ("data", "mptcp") for path in ("a", "b", "wifi")}


def test_a_token_that_was_rotated_and_one_of_another_kit(kit: PreflightKit) -> None:
    token = kit.kit.probe / "token"
    old = kit.token_of("rotate", "probe-1")
    new = token.read_text()
    token.write_text(old)
    status, told = kit.check(*QUICK)
    assert (status, failed(told)) == (1, {"token"}), shown(told)
    kit.token_of("add", "probe-7")
    status, told = kit.check(*QUICK)
    token.write_text(new)
    assert (status, failed(told)) == (1, {"token"}), shown(told)
    assert any("probe-7" in line["finding"] for line in told["lines"] if line["line"] == "token")


def test_a_share_of_sessions_that_is_used_up(kit: PreflightKit) -> None:
    with kit.all_sessions_open():
        status, told = kit.check(*QUICK)
    assert (status, failed(told)) == (1, {"budget"}), shown(told)


def test_another_measurement_is_waited_for_or_told(kit: PreflightKit) -> None:
    running = kit.kit.experiment("--kind", "tcp", "--path", "wifi", "--seconds", "60")
    status, told = kit.check(*QUICK)
    assert (status, failed(told)) == (1, {"data:a", "data:b", "data:wifi"}), shown(told)
    assert all("run is under way" in line["finding"] for line in told["lines"] if line["line"] == "data")
    kit.kit.tool("probe", "tandem", "experiment", "stop", "--config", str(kit.kit.probe / "config.toml"))
    running.communicate(timeout=60)


def test_a_hung_collector_is_all_there_is_to_mend(kit: PreflightKit) -> None:
    with kit.hung():
        status, told = kit.check(*QUICK)
    assert (status, failed(told)) == (1, {"collector"}), shown(told)


def test_without_a_collector_all_is_looked_at_all_the_same(kit: PreflightKit) -> None:
    """Also what only a configuration can make fail: another SIM than named, a plan used up, a disk without room, no chronyd."""
    kit.spent("b")
    with kit.without_collector():
        last = json.loads(kit.at_server("probe", "last", "probe-1", "--json"))
        # What the modems went through in the tests before may be among them, and nothing else foretold it.
        foretold = ("in order", "voltage", "plan", "disk", "hot")
        assert [why for why in last["reasons"] if any(word in why for word in foretold)] == [], last
        assert set(last["radio"]) == {"a", "b"}
        assert kit.at_server("probe", "list").startswith("probe-1 ")
        before = {file: file.stat().st_mtime_ns for file in kit.kit.probe.rglob("*")}
        status, told = kit.check(*PATIENT, "--accept", "collector")
        assert (status, failed(told), failed(told, "accepted")) == (0, set(), {"collector"}), shown(told)
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
        status, told = kit.check(*QUICK, config=disk.folder / "config.toml")
        assert (status, failed(told)) == (1, {"collector", "sim:b", "budget:b", "disk"}), shown(told)
        file = kit.kit.probe / "no-chrony.toml"
        file.write_text(text.replace('source = "system"', 'source = "chrony"'))
        status, told = kit.check(*QUICK, config=file)
        assert (status, failed(told)) == (1, {"collector", "clock"}), shown(told)


def test_what_a_killed_check_left_is_removed_by_the_next(kit: PreflightKit) -> None:
    """Its folder; the next one's collector gives the paths their routes, rules and endpoints anew, and takes them all away at its end."""
    with kit.without_collector(signal.SIGTERM):
        assert (kit.checks(), kit.ours_in_the_kernel()) == ([], 0)
        with kit.killed_check() as left:
            assert (kit.checks(), kit.ours_in_the_kernel() > 0) == ([left], True)
            assert "token" not in {file.name for file in left.rglob("*")}
        kit.check(*QUICK)
        assert (kit.checks(), kit.ours_in_the_kernel()) == ([], 0)


def test_a_receiver_that_is_gone_and_a_supply_that_was_too_low_once(kit: PreflightKit) -> None:
    """Last, since the firmware remembers until the next boot."""
    kit.receiver.close()
    with kit.weak_supply():
        status, told = kit.check(*QUICK)
    assert (status, failed(told)) == (1, {"gps", "power"}), shown(told)
    status, told = kit.check(*QUICK, "--accept", "gps", "--accept", "power")
    assert (status, failed(told, "accepted")) == (0, {"gps", "power"}), shown(told)


def _with(text: str, path: str, sim: str, plan: str) -> str:
    """The configuration with a SIM and a plan for a path."""
    head, name, rest = text.partition(f'name = "{path}"\n')
    before, modem, after = rest.partition('driver = "auto"\n')
    return f"{head}{name}{before}{modem}{sim}\n\n{plan}\n{after}"
