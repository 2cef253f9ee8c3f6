"""The units that install the programs as services: systemd understands them, they leave little open; what systemd is told, and by whom."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support.serve_on_loopback import end, lay_out, start
from tandem.notify import Notify
from tandem_server.store.private import account_password

ROOT = Path(__file__).parents[3]
UNITS = sorted([*(ROOT / "server/system").glob("*.service"), *(ROOT / "collector/system").glob("*.service")])
EXPOSURE = {f"tandem-{role}": 1.5 for role in ("database", "gateway", "endpoint", "worker", "pages")} | {"tandem": 3.0}
"""The most that `systemd-analyze security` may say (0: nothing exposed, 10: everything)."""

CAPABILITIES = {"tandem": "CAP_NET_ADMIN CAP_NET_RAW"}


def settings(unit):
    """The last value of each setting of [Service]."""
    lines = unit.read_text().partition("[Service]")[2].partition("[Install]")[0].splitlines()
    return dict(line.split("=", 1) for line in lines if re.match(r"[A-Za-z]+=", line))


def analysed(*args):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd-analyze on this system")
    return subprocess.run([program, *map(str, args)], capture_output=True, text=True, timeout=180, check=False)


def test_every_service_has_its_unit():
    assert {unit.stem for unit in UNITS} == EXPOSURE.keys()


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_service_is_nobodys_root(unit):
    has = settings(unit)
    assert has["User"] not in ("", "root")
    assert has["NoNewPrivileges"] == "yes"
    assert has["ProtectSystem"] == "strict"
    assert has["AmbientCapabilities"] == has["CapabilityBoundingSet"] == CAPABILITIES.get(unit.stem, "")
    assert (has["UMask"], has["StateDirectoryMode"], has["LimitCORE"]) == ("0077", "0700", "0")
    assert has["Type"] == "notify"
    assert int(has["WatchdogSec"]) > 0
    assert re.fullmatch(r"[0-9]+[MG]", has["MemoryMax"])
    assert ("LoadCredential" in has) == (unit.stem != "tandem-database")
    # systemd looks up a group's name once, at the start: a modem's driver that is loaded later would stay forbidden.
    allowed = re.findall(r"(?m)^DeviceAllow=(\S+)", unit.read_text())
    assert [name for name in allowed if not re.fullmatch(r"/dev/\S+|char-[0-9]+", name)] == []


def test_systemd_understands_them(tmp_path):
    for file in [*UNITS, *(ROOT / "server/system").glob("*.target")]:
        # The programs are not installed here; everything else is as it is.
        (tmp_path / file.name).write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", file.read_text()))
    told = analysed("verify", "--man=no", *sorted(tmp_path.iterdir()))
    assert (told.returncode, told.stdout + told.stderr) == (0, "")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_what_is_exposed_stays_below_its_bound(unit):
    most = EXPOSURE[unit.stem]
    told = analysed("security", "--offline=true", "--no-pager", f"--threshold={int(most * 10)}", unit)
    level = re.search(r"Overall exposure level for \S+: ([0-9.]+)", told.stdout)
    assert level, told.stdout + told.stderr
    assert float(level[1]) <= most, told.stdout
    assert told.returncode == 0


@pytest.fixture
def manager(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(180)
        yield listening, tmp_path / "notify"


def test_without_a_service_manager_or_with_anothers_nothing_is_told(monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    told = Notify.of_environment()
    assert told.every_s is None
    for tell in (told.ready, told.alive, told.stopping):
        tell()
    for name, value in (("NOTIFY_SOCKET", "@there"), ("WATCHDOG_USEC", "1000000"), ("WATCHDOG_PID", "1")):
        monkeypatch.setenv(name, value)
    assert Notify.of_environment().every_s is None


def test_ready_alive_and_stopping(manager, monkeypatch):
    listening, address = manager
    watched = {"NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}
    for name, value in watched.items():
        monkeypatch.setenv(name, value)
    told = Notify.of_environment()
    assert told.every_s == 10
    assert "NOTIFY_SOCKET" not in os.environ, "no child tells it too"
    told.ready()
    for _ in range(3):
        told.alive()
    told.stopping()
    assert [listening.recv(100) for _ in range(3)] == [b"READY=1", b"WATCHDOG=1", b"STOPPING=1"]
    listening.close()
    told.stopping()  # nobody there any more: no fault of ours


@pytest.mark.parametrize("roles", [["gateway"], ["endpoint"], ["worker"], []])
def test_the_server_tells_when_it_is_ready_and_that_it_lives(manager, tmp_path, monkeypatch, roles):
    listening, address = manager
    lay_out(tmp_path)
    if roles:
        (tmp_path / "influxdb").mkdir()
        (tmp_path / "influxdb/tandem.password").write_text("unused")
    monkeypatch.setenv("NOTIFY_SOCKET", str(address))
    monkeypatch.setenv("WATCHDOG_USEC", "300000")
    process = start(tmp_path, *roles)
    told = [listening.recv(100)]
    while told.count(b"WATCHDOG=1") < 3 or b"READY=1" not in told:
        told.append(listening.recv(100))
    assert told.count(b"READY=1") == 1
    assert end(process) == 0
    listening.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            told.append(listening.recv(100))
    assert told[-1] == b"STOPPING=1"
    assert told.count(b"STOPPING=1") == 1


def test_a_credential_of_systemd_takes_the_place_of_the_databases_folder(tmp_path, monkeypatch):
    for folder, password in (("folder", "of the folder\n"), ("given", "given\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "tandem.password").write_text(password)
    assert account_password(tmp_path / "folder") == "of the folder"
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path / "given"))
    assert account_password(tmp_path / "folder") == "given"
    (tmp_path / "given/tandem.password").unlink()
    assert account_password(tmp_path / "folder") == "of the folder"


def test_without_enough_descriptors_it_is_said():
    """In a process of its own: limits are for good."""
    code = (
        "import logging, resource; logging.basicConfig();"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 1000));"
        "from tandem_server.cli.listeners import enough_descriptors;"
        "enough_descriptors(500); print(resource.getrlimit(resource.RLIMIT_NOFILE)); enough_descriptors(4000)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(628, 1000)"
    assert "1000 file descriptors allowed, 4000 connections configured; hint: LimitNOFILE=4128" in done.stderr
