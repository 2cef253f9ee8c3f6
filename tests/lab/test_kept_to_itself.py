"""Nobody reaches into a probe, and what it and the server write down holds no secret: on the rig, while it measures by TCP and UDP."""

from __future__ import annotations

import ipaddress
import os
import socket
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.running_kit import RunningKit, awaited, find_influxd, running_kit
from tandem_bench.modem.families import FAMILIES
from tandem_bench.modem.process import Setup, made_up_imei, modem
from tandem_bench.modem.timeline import read
from tandem_bench.run.programs import Owner

pytestmark = [pytest.mark.lab, pytest.mark.slow]

HOME_DEG = "48.137154", "11.576124"
ZONE = f"""
[position]
mode = "coarse"
[[position.home_zone]]
latitude_deg = {HOME_DEG[0]}
longitude_deg = {HOME_DEG[1]}
"""
SECRET_FILES = {
    "probe/probe-1/token", "server/tls/ca.key", "server/tls/server.key", "server/influxdb/admin.password",
    "server/influxdb/tandem.password", "server/registry.sqlite",
}  # fmt: skip


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[socket.socket]:
    place = tmp_path_factory.mktemp("notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(place / "s"))
        Owner.of_caller().give(place / "s")
        listening.settimeout(30)
        yield listening


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory, told: socket.socket) -> Iterator[RunningKit]:
    influxd = find_influxd()
    if influxd is None:
        pytest.skip("no influxd; ./kit setup takes it out of the distribution's package")
    program = ("env", f"NOTIFY_SOCKET={told.getsockname()}", "WATCHDOG_USEC=6000000", sys.executable, "-m", "tandem")
    with running_kit(tmp_path_factory.mktemp("kept"), influxd, program, ZONE) as running:
        yield running


def listening(kit: RunningKit, *family: str) -> list[list[str]]:
    """Rows of ``ss`` for the sockets of the probe's namespace that anyone may speak to: the local end is the fourth word from its state."""
    return [line.split() for line in kit.run("probe", "ss", "-Hlnp", *family).splitlines()]


def outside(kit: RunningKit) -> list[str]:
    """Local ends that are not on loopback."""
    ends = [row[3] for row in listening(kit, "-t", "-u", "-S")]
    hosts = {end: end.rpartition(":")[0].strip("[]").partition("%")[0] for end in ends}
    return [end for end, host in hosts.items() if host in ("*", "") or not ipaddress.ip_address(host).is_loopback]


def test_systemd_is_told_that_it_is_ready_and_lives(kit: RunningKit, told: socket.socket) -> None:
    assert kit.collector.pid
    assert [told.recv(100) for _ in range(3)] == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1"]


def test_no_listener_but_on_loopback_while_it_measures(kit: RunningKit) -> None:
    seen: set[str] = set()
    for name, args in (("download", ("--seconds", "2")), ("latency", ("--set", "seconds=1"))):
        running = kit.experiment(*args, name=name)
        while running.poll() is None:
            seen |= set(outside(kit))
        running.communicate()
        assert running.returncode == 0
    assert seen == set()


def test_the_socket_for_people_is_its_owners_alone(kit: RunningKit) -> None:
    paths = {row[4] for row in listening(kit, "-x") if str(kit.folder) in row[4] and "/bench/" not in row[4]}
    assert paths == {str(kit.probe / "status.sock")}
    assert stat.S_IMODE((kit.probe / "status.sock").stat().st_mode) == 0o600


def written(kit: RunningKit) -> dict[str, Path]:
    """What probe and server wrote, by name; the bench's own files say who the made-up modems are."""
    found = {}
    for file in kit.folder.rglob("*"):
        name = str(file.relative_to(kit.folder))
        if file.is_file() and not file.is_symlink() and not name.startswith("bench/"):
            found[name] = file
    return found


def test_what_it_wrote_holds_no_secret_but_where_it_belongs(kit: RunningKit) -> None:
    awaited("records have arrived", lambda: kit.polls_stored("a") > 5)
    files = written(kit)
    assert len(files) > 30
    values = {
        "token": [(kit.probe / "token").read_text().strip()],
        "password": [files[f"server/influxdb/{user}.password"].read_text().strip() for user in ("admin", "tandem")],
        "home": list(HOME_DEG),
        "modem": identities(kit),
    }
    assert all(len(value) > 8 for several in values.values() for value in several)
    assert len(set(values["modem"])) == 6
    allowed = {"token": {"probe/probe-1/token"}, "password": SECRET_FILES, "home": {"probe/probe-1/config.toml"}}
    for what, several in values.items():
        holding = {n for n, file in files.items() if any(value.encode() in read_if_there(file) for value in several)}
        assert holding - allowed.get(what, set()) == set(), what


def read_if_there(file: Path) -> bytes:
    """The spool goes on while we look."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def identities(kit: RunningKit) -> list[str]:
    """IMEI, IMSI and card number of both modems, as they tell anyone at their ports."""
    found = []
    for operator in "AB":
        name, timeline = f"Operator {operator}", read(kit.rig.folder / f"timeline-{operator}.jsonl")
        made = {"timeline": timeline, "epoch_ns": 0, "link": Path(), "imei": made_up_imei(name, 1), "seed": 1}
        one = modem(Setup(family=FAMILIES["quectel"], operator=name, **made))
        found += [one.imei, one.imsi, one.iccid]
    return found


def test_secrets_are_their_owners_alone(kit: RunningKit) -> None:
    files = {name: file.stat() for name, file in written(kit).items() if file.exists()}
    modes = {name: stat.S_IMODE(file.st_mode) for name, file in files.items()}
    assert modes.keys() >= SECRET_FILES
    assert {name: oct(modes[name]) for name in SECRET_FILES if modes[name] & 0o077} == {}
    assert {name for name, mode in modes.items() if mode & 0o022} == set(), "nobody else may write anything"
    owner = Owner.of_caller()
    assert {file.st_uid for file in files.values()} <= {owner.uid, os.getuid()}
    secret = [n for n in modes if n.endswith((".key", ".password", "token", "secret", "sim.secret"))]
    assert {name: oct(modes[name]) for name in secret if modes[name] & 0o077} == {}
