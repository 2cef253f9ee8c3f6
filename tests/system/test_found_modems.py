"""`tandem_paths: found`, played on a Debian's root folder by the unchanged role: its own program finds modems in a /sys of files, one that
answers at a terminal and two sticks that are routers. No systemd runs there, and no network is there."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from targets.available import NEEDED, made
from targets.root_folder import RootFolder, laid

from support.fake_sys import FakeSys
from support.scripted_modem import ScriptedModem
from tandem.app.config import parse
from tandem.app.preflight.checks import Facts, settling_lines

REPOSITORY = Path(__file__).parents[2]
ACCEPTED = "etc/ansible/facts.d/tandem_paths.fact"
READY = {
    "AT+CPIN?": "+CPIN: READY\r\n\r\nOK",
    "AT+CIMI": "244053000000000\r\n\r\nOK",
    "AT+CRSM=176,28486,0,0,17": '+CRSM: 144,0,"01526564FFFFFFFFFFFFFFFFFFFFFFFFFF"\r\n\r\nOK',
}
"""A SIM that calls itself "Red", of a network for which one APN is published."""
CONFIG = """[probe]
name = "kit-01"
[server]
gateway = "https://s:8443"
control = "https://s:8444"
measurement = "http://s:8480"
token_file = "/etc/tandem/token"
[[path]]
name = "b"
usb = "1-1.2"
[path.modem]
usb = "1-1.2"
[path.modem.connection]
apn = "web.b"
"""
SETTINGS: dict[str, Any] = {"tandem_path_settings": {"Red": {"ip_type": "ipv4"}}, "secret_pin_a": "1234"}
pytestmark = [
    pytest.mark.system,
    pytest.mark.slow,
    pytest.mark.timeout(2400),
    NEEDED,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]


class Kit(RootFolder):
    """With the archive of packages at /srv/archive in it."""

    def plugged(self) -> FakeSys:
        """A bus with nothing in it, in place of the one before; ``settle`` makes it the kit's."""
        subprocess.run(["rm", "-rf", self.folder / "sys"], check=True)
        return FakeSys(self.folder / "sys")

    def settle(self) -> None:
        """Links lead to the same places in the kit as here."""
        for link in (self.folder / "sys").rglob("*"):
            if link.is_symlink() and link.readlink().is_absolute():
                target = os.path.relpath(link.readlink(), link.parent)
                link.unlink()
                link.symlink_to(target)
        subprocess.run(["rm", "-rf", self.root / "sys"], check=True)
        subprocess.run(["cp", "-a", self.folder / "sys", self.root / "sys"], check=True)

    def play(self, *options: str, **variables: Any) -> tuple[int, str, list[str]]:
        """The roles `packages` and `modems`: the exit status, what failed tasks and messages said, what changed."""
        self.settle()
        given = {"tandem_debian_mirror": "file:/srv/archive", "tandem_paths": "found"}
        given |= {"tandem_checkout": str(REPOSITORY), "modems_wait_s": 0}
        status, tasks = self.played("kit-01", ["packages", "modems"], given | variables, *options)
        said, changed = [], []
        for name, result in tasks:
            said += [one["msg"] for one in result.get("results", [result]) if isinstance(one.get("msg"), str)]
            if result.get("changed"):
                changed.append(name)
        return status, "\n".join(said), changed

    def read(self, file: str) -> str:
        return (self.root / file).read_text()

    def accepted(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.read(ACCEPTED))
        return found


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kit]:
    sources = made()
    one = Kit(tmp_path_factory.mktemp("found") / "kit")
    with laid(one, sources):
        one.mount("--bind", "/dev/pts", one.root / "dev/pts")
        (one.root / "srv/archive").mkdir(parents=True)
        one.mount("--bind", sources / "archive", one.root / "srv/archive")
        yield one


@pytest.fixture
def modem(kit: Kit) -> Iterator[ScriptedModem]:
    """At /dev/ttyUSB3 of the kit."""
    one = ScriptedModem(kit.root / "dev/ttyUSB3")
    one.answers = dict(READY)
    yield one
    one.close()


def test_without_a_modem_one_line_says_what_helps(kit: Kit) -> None:
    kit.plugged()
    status, said, _ = kit.play()
    assert status == 2
    assert (
        "kit-01: no modem is plugged in; hint: plug the modems in, into a hub with power of its own, and run this again"
        in said
    )
    assert not (kit.root / ACCEPTED).exists()


def test_a_sim_with_a_pin_and_an_apn_that_is_not_known_are_told(kit: Kit, modem: ScriptedModem) -> None:
    kit.plugged().quectel("1-1.2", 0, "wwan0")
    modem.answers["AT+CPIN?"] = "+CPIN: SIM PIN\r\n\r\nOK"
    status, said, _ = kit.play()
    assert status == 2
    assert (
        f"kit-01: path a (USB 1-1.2): the SIM wants its PIN; hint: ./kit fleet secret kit-01 secret_pin_a -i {kit.folder}"
        in said
    )
    modem.answers |= READY | {"AT+CIMI": "262013000000000\r\n\r\nOK"}
    status, said, _ = kit.play()
    assert status == 2
    assert "the APN is not known" in said
    assert "hint: in host_vars, tandem_path_settings: {a: {apn: NAME}}" in said
    assert not (kit.root / ACCEPTED).exists()
    assert not [command for command in modem.heard if command.startswith("AT+CPIN=")]


@pytest.mark.usefixtures("modem")
def test_what_is_plugged_in_is_taken_over_and_a_second_play_changes_nothing(kit: Kit) -> None:
    bus = kit.plugged()
    bus.quectel("1-1.2", 0, "wwan0")
    status, said, _ = kit.play("--check", modems_accept=True)
    assert status == 0, said
    assert not (kit.root / ACCEPTED).exists()
    status, said, _ = kit.play(**SETTINGS)
    assert status == 0, said
    assert kit.accepted()["paths"] == [{"name": "a", "usb": "1-1.2", "operator": "Red", "apn": "internet"}]
    assert 'KERNELS=="1-1.2", ENV{TANDEM_PATH}="a"' in kit.read("etc/udev/rules.d/79-tandem-paths.rules")
    assert "IPv6AcceptRA=no" in kit.read("etc/systemd/network/10-tandem-a.network")
    assert kit.read("etc/tandem/pin-a") == "1234\n"
    assert "CAP_SYS_ADMIN" not in kit.read("etc/systemd/system/tandem.service.d/modems.conf")
    status, said, changed = kit.play(**SETTINGS)
    assert (status, changed) == (0, []), said
    status, said, changed = kit.play("--check", **SETTINGS)
    assert (status, changed) == (0, []), said


def test_a_modem_that_is_unplugged_stays_until_the_difference_is_accepted(kit: Kit) -> None:
    before = kit.accepted()
    bus = kit.plugged()
    bus.hilink("1-1.3", "eth1")
    bus.hilink("1-1.4", "eth2")
    status, said, _ = kit.play()
    assert status == 0, said
    assert "kit-01: accepted are modems at USB 1-1.2, plugged in are 1-1.3, 1-1.4" in said
    assert "-l kit-01 -e modems_accept=true" in said
    assert kit.accepted() == before


def test_a_run_that_was_broken_off_before_settings_were_applied_is_finished_by_the_next(kit: Kit) -> None:
    kit.plugged()
    listed = {"tandem_paths": [{"name": "a", "usb": "1-1.2", "apn": "internet"}]}
    status, said, _ = kit.play(**listed)
    assert status == 0, said
    applied = kit.root / "etc/tandem/modems.applied"
    before = applied.read_text()
    applied.write_text("")  # as a run leaves it that ended when the settings were written
    status, said, changed = kit.play(**listed)
    assert (status, changed) == (0, ["modems : Have udev look at all modems again"]), said
    assert applied.read_text() == before
    assert kit.play(**listed)[2] == []


def test_two_sticks_with_one_address_are_parted_by_themselves(kit: Kit) -> None:
    sticks = [
        {"name": name, "usb": place, "port": "http://192.168.8.1", "driver": "hilink"}
        for name, place in (("a", "1-1.3"), ("b", "1-1.4"))
    ]
    (kit.root / ACCEPTED).write_text(json.dumps({"paths": sticks, "separation": "namespaces"}))
    status, said, _ = kit.play()
    assert status == 0, said
    assert "CAP_SYS_ADMIN" in kit.read("etc/systemd/system/tandem.service.d/modems.conf")
    status, said, _ = kit.play(modems_separation="routes")
    assert status == 0, said
    assert "CAP_SYS_ADMIN" not in kit.read("etc/systemd/system/tandem.service.d/modems.conf")


def test_an_access_point_that_carries_nothing_ends_the_play_with_the_variable_that_names_it(kit: Kit) -> None:
    """What the real check makes of a path without an address; a program that only says so stands in the collector's place."""
    config = parse(CONFIG, Path("/etc/tandem/config.toml"))
    facts = Facts(config, {"paths": {"b": {"state": "no_address", "interface": "wwan0"}}}, "")
    lines = [line for line in settling_lines(facts) if line.name == "path"]
    (kit.root / "told.json").write_text(json.dumps({"lines": [line.as_json() for line in lines]}))
    for place in ("opt/tandem/current/bin/tandem", "usr/bin/tandem"):
        (kit.root / place).parent.mkdir(parents=True, exist_ok=True)
        (kit.root / place).unlink(missing_ok=True)
        (kit.root / place).write_text("#!/bin/sh\n: >/run/tandem-preflight.html; cat /told.json; exit 1\n")
        (kit.root / place).chmod(0o755)
    status, tasks = kit.played("kit-01", ["preflight"], {})
    assert (status, tasks[-1][1]["msg"]) == (
        2,
        "kit-01 is not ready: path of path b: wwan0 has no address; hint: is web.b the APN of this SIM? apn of path b in tandem_paths, or"
        f" tandem_path_settings: {{b: {{apn: NAME}}}}; mmcli -m any; {kit.folder}/preflight/kit-01.html has all of it",
    )
