"""Releases of the collector under a real systemd: the programs, units and commands of role ``collector`` in a booted container, with small
programs in the collector's place that are healthy, end, or hang."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import jinja2
import pytest
from targets import story as stories
from targets import upgrade
from targets.available import NEEDED
from targets.available import made as sources
from targets.ground import PROBE
from targets.story import Story

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(1200), NEEDED]
FILES = upgrade.ROLES / "collector/files"
COLLECTOR = """#!/usr/bin/python3
import json, os, pathlib, socket, sys, time
how = (pathlib.Path(__file__).resolve().parents[1] / "how").read_text().strip()
if "--check" in sys.argv or "idle" in sys.argv:
    sys.exit(0)
if sys.argv[1] == "status":
    made = int(10 * time.monotonic())
    print(json.dumps({"paths": {}, "modem_health": {}, "spool": {"path": "a", "made": made}}))
    sys.exit(how != "healthy")
if how == "ends":
    sys.exit(4)
if how == "healthy":
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
time.sleep(86400)
"""
UNIT = "[Service]\nType=notify\nExecStart=/usr/bin/tandem run\nRestart=always\nRestartSec=1\nEnvironment=RELEASE={name}"
LINKS = {
    "/usr/bin/tandem": "/opt/tandem/current/bin/tandem",
    "/etc/systemd/system/tandem.service": "/opt/tandem/current/tandem.service",
    "/etc/systemd/system/multi-user.target.wants/tandem.service": "../tandem.service",
    "/opt/tandem/current": "programs/old",
}
RELEASES = {"old": "healthy", "new": "healthy", "ending": "ends", "hanging": "hangs"}
BACK = "tandem-release-back.service"
LIMITS = {"collector_wait_s": 5, "collector_healthy_within_s": 30, "collector_steady_s": 3}


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """With a release that runs, and others that could."""
    with stories.containers(tmp_path_factory.mktemp("booted"), sources()) as story:
        seed = {"/usr/local/sbin/tandem-release": (FILES / "tandem-release").read_text()}
        seed |= {f"/etc/systemd/system/{BACK}": (FILES / BACK).read_text()}
        unit = jinja2.Template((FILES.parent / "templates/tandem-release.service.j2").read_text()).render(LIMITS)
        seed |= {"/etc/systemd/system/tandem-release.service": unit}
        for name, how in RELEASES.items():
            seed |= {f"/opt/tandem/programs/{name}/how": how, f"/opt/tandem/programs/{name}/bin/tandem": COLLECTOR}
            seed |= {f"/opt/tandem/releases/{name}/config.toml": ""}
            seed |= {f"/opt/tandem/releases/{name}/tandem.service": UNIT.format(name=name)}
        made = [f"mkdir -p $(dirname {file}); printf %s {shlex.quote(text)} >{file}" for file, text in seed.items()]
        made += [f"ln -s /opt/tandem/programs/{name}/bin /opt/tandem/releases/{name}/bin" for name in RELEASES]
        made += [f"ln -sfn {to} {link}" for link, to in LINKS.items()]
        made += [
            "chmod 755 /usr/local/sbin/tandem-release /opt/tandem/programs/*/bin/tandem",
            "systemctl daemon-reload",
        ]
        made += [f"systemctl enable {BACK}"]
        story.told(PROBE, f"sudo sh -euc {shlex.quote('; '.join(made))}")
        assert tries(story, "old") == (0, "old runs\n")
        yield story


def tries(kit: Story, name: str) -> tuple[int, str]:
    done = kit.ground.ssh(PROBE, f"sudo sh -c {shlex.quote(upgrade.trying(f'/opt/tandem/releases/{name}'))}", 300)
    return done.returncode, done.stdout


def runs(kit: Story, name: str) -> None:
    """That release, with its own unit, and nothing is to be taken back."""
    look = "systemctl is-active tandem.service; systemctl show --property=Environment,NeedDaemonReload tandem.service; ls /opt/tandem"
    said = f"active\nEnvironment=RELEASE={name}\nNeedDaemonReload=no\ncurrent\n"
    kit.awaited(
        f"{name} runs",
        PROBE,
        look + "; readlink -f /opt/tandem/current",
        lambda told: told.startswith(said) and "before" not in told,
    )
    assert kit.told(PROBE, "systemctl is-enabled tandem.service; systemctl --failed --no-legend --plain") == "enabled\n"
    assert kit.told(PROBE, "readlink -f /opt/tandem/current") == f"/opt/tandem/releases/{name}\n"


@pytest.mark.parametrize("bad", ["ending", "hanging"])
def test_one_that_is_not_healthy_is_taken_back(kit: Story, bad: str) -> None:
    assert tries(kit, bad) == (1, f"{bad} did not report healthy: the collector does not stay up\n")
    runs(kit, "old")


def test_a_trial_that_is_killed_is_taken_back(kit: Story) -> None:
    trial = upgrade.trying("/opt/tandem/releases/hanging")
    killed = "until [ -L /opt/tandem/before ]; do sleep 0.1; done; systemctl kill --signal=KILL tandem-release.service"
    # One that came to its end would say how it went.
    assert kit.told(PROBE, f"sudo sh -c {shlex.quote(f'({trial}) & {killed}; wait')}") == ""
    runs(kit, "old")


def test_a_healthy_one_stays(kit: Story) -> None:
    assert tries(kit, "new") == (0, "new runs\n")
    runs(kit, "new")
    assert kit.told(PROBE, "readlink -f /opt/tandem/previous") == "/opt/tandem/releases/old\n"
