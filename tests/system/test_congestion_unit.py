"""``tandem-congestion.service`` of role ``congestion`` under a real systemd, in a booted container that may load BPF into this machine's
kernel: LIA, OLIA and BALIA are there as long as it runs, and nothing of them is left after kill -9 of its processes."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import jinja2
import pytest
import yaml
from targets import ground as grounds
from targets.available import NEEDED
from targets.available import made as sources
from targets.container_target import booted, laid_out, server_cables
from targets.ground import SERVER
from targets.story import Story
from targets.vm_target import REPOSITORY

from tandem_server import congestion

OBJECT = Path(os.environ.get("TANDEM_CONGESTION") or REPOSITORY / "build/congestion/coupled.bpf.o")
LACK = congestion.refusal(OBJECT)
BPFTOOL = shutil.which("bpftool") or "/usr/sbin/bpftool"
pytestmark = [
    pytest.mark.system,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    NEEDED,
    pytest.mark.skipif(LACK is not None, reason=str(LACK)),
]
ROLE = REPOSITORY / "ansible/roles/congestion"
UNIT = "etc/systemd/system/tandem-congestion.service"
AVAILABLE = "cat /proc/sys/net/ipv4/tcp_available_congestion_control"
RIGHTS = ("--capability=CAP_BPF,CAP_PERFMON,CAP_SYS_RESOURCE", "--system-call-filter=bpf")
"""Which a container has only where it is told so."""


def unit(machine: str) -> str:
    """As the role writes it on that machine."""
    text = (ROLE / "templates/tandem-congestion.service.j2").read_text()
    templates = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True)  # noqa: S701
    return templates.from_string(text).render(congestion_machine=machine, ansible_managed="")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    if congestion.registered():
        pytest.skip("the controllers are loaded already, by another; hint: tandem-server congestion unload")
    with ExitStack() as stack:
        ground = stack.enter_context(grounds.ground(tmp_path_factory.mktemp("congestion"), sources()))
        # Not in its own place, which the unit may not see (/tmp, /home).
        folders = ("collector/src", "server/src", "packages")
        path = ":".join(f"/opt/tandem/{folder}" for folder in folders)
        program = f'#!/bin/sh\nPYTHONPATH={path} exec python3 -B -m tandem_server "$@"\n'
        files = {
            "usr/bin/tandem-server": (program.encode(), 0o755),
            "usr/lib/tandem/coupled.bpf.o": (OBJECT.read_bytes(), 0o644),
            "usr/lib/tandem/coupled.json": (OBJECT.with_name("coupled.json").read_bytes(), 0o644),
            UNIT: (unit("server").encode(), 0o644),
        }
        root = stack.enter_context(laid_out(ground, "server", ground.seed("server", SERVER) | files))
        shared = {f"/opt/tandem/{folder}": REPOSITORY / folder for folder in folders[:2]}
        shared |= {"/opt/tandem/packages": Path(sysconfig.get_path("purelib")), "/usr/sbin/bpftool": Path(BPFTOOL)}
        runs = stack.enter_context(ExitStack())
        runs.enter_context(booted(ground, SERVER, root, server_cables, shared, more=RIGHTS))
        stack.callback(congestion.unload)
        yield Story(ground, root, root, ExitStack(), runs)


def loaded(said: str) -> bool:
    return {"lia", "olia", "balia"} <= set(said.split())


def unloaded(said: str) -> bool:
    return not {"lia", "olia", "balia"} & set(said.split())


def test_started_they_are_there_and_stopped_they_are_gone(server: Story) -> None:
    server.told(SERVER, "sudo systemctl daemon-reload; sudo systemctl start tandem-congestion")
    assert loaded(server.told(SERVER, AVAILABLE))
    server.told(SERVER, "sudo systemctl stop tandem-congestion")
    assert unloaded(server.told(SERVER, AVAILABLE))
    assert server.told(SERVER, "systemctl --failed --no-legend --plain") == ""


@pytest.mark.parametrize("whom", ["main", "all"])
def test_killed_it_leaves_none_and_starts_again(server: Story, whom: str) -> None:
    server.told(SERVER, "sudo systemctl reset-failed; sudo systemctl start tandem-congestion")
    server.told(SERVER, f"sudo systemctl kill --signal=KILL --kill-whom={whom} tandem-congestion")
    server.awaited("nothing is left", SERVER, AVAILABLE, unloaded, every_s=0.2)
    server.awaited("systemd loads them again", SERVER, AVAILABLE, loaded)
    server.told(SERVER, "sudo systemctl stop tandem-congestion")
    assert unloaded(server.told(SERVER, AVAILABLE))


def test_a_probes_unit_needs_no_program_of_ours(server: Story) -> None:
    (server.server / UNIT).write_text(unit("probe"))
    server.told(SERVER, "sudo systemctl daemon-reload; sudo systemctl start tandem-congestion")
    assert loaded(server.told(SERVER, AVAILABLE))
    note = server.told(SERVER, "cat /run/tandem-congestion/loaded.json")
    assert yaml.safe_load(note)["controllers"] == ["lia", "olia", "balia"]
    server.told(SERVER, "sudo systemctl stop tandem-congestion")
    assert unloaded(server.told(SERVER, AVAILABLE))
