"""The units that install the programs as services: systemd understands them, and they leave little open."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UNITS = sorted([*(ROOT / "server/system").glob("*.service"), *(ROOT / "collector/system").glob("*.service")])
EXPOSURE = {"tandem-database": 1.5, "tandem-gateway": 1.5, "tandem-endpoint": 1.5, "tandem-pages": 1.5, "tandem": 3.0}
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
