"""A kit that was provisioned in a container becomes a machine: its root with modems on USB beside it, as a disk."""

from __future__ import annotations

import compileall
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from targets import disk
from targets.container_target import QUIET
from targets.ground import CONTROL, OPERATORS, SERVER_NAME, Seed
from targets.usb_modems import PLACES
from targets.vm_target import REPOSITORY

from tandem_bench.scenario import load, play, write_timelines

BENCH = Path("usr/local/lib/usb-modems")
UNIT = "usb-modems.service"
SERVICE = """[Unit]
Description=Tests: two modems on USB and the operators behind them
After=sys-kernel-config.mount
Wants=sys-kernel-config.mount

[Service]
Environment=PYTHONPATH=/{bench}
ExecStart=/usr/bin/python3 /{bench}/usb_modems.py serve {operators} {server} {name}

[Install]
WantedBy=multi-user.target
"""
UNMANAGED = "[keyfile]\nunmanaged-devices=interface-name:eth1;interface-name:gad*\n"
"""The operators' card and the modems' inner ends are nothing of the kit's."""


def machine_of(root: Path, seed: Seed, file: Path, work: Path) -> None:
    """``root``, which nothing writes to now, with ``seed`` in it as a disk in ``file``. ``root`` stays as it is; ``work``: for that."""
    with _over(root, work) as made:
        for unit in QUIET:
            (made / "etc/systemd/system" / f"{unit}.service").unlink()
        for path, (content, mode) in seed.items():
            target = made / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(mode)
        bench = made / BENCH
        for path, timeline in zip(PLACES, _timelines(work), strict=True):
            shutil.copy(timeline, bench / f"timeline-{path}.jsonl")
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / "firmware/bench/src/tandem_bench", bench / "tandem_bench", ignore=unwanted)
        # On an emulated processor each start would do it again.
        compileall.compile_dir(bench, quiet=2, stripdir=str(made), prependdir="/")
        (made / "etc/systemd/system/multi-user.target.wants" / UNIT).symlink_to(f"/etc/systemd/system/{UNIT}")
        disk.image_of(made, file)


def lan_profile(address: str, server: str) -> Seed:
    """NetworkManager's profile of the wired network, as its configuration tool writes it; the other card is the operators'."""
    text = (
        "[connection]\nid=lan\ntype=ethernet\ninterface-name=eth0\n[ipv4]\nmethod=manual\n"
        f"address1={address}/24\nroute1={server}/32,{CONTROL},1000\ndns={CONTROL};\nnever-default=true\n"
        "[ipv6]\nmethod=disabled\n"
    )
    return {"etc/NetworkManager/system-connections/lan.nmconnection": (text.encode(), 0o600)}


def usb_modems_seed(server: str) -> Seed:
    """The service with the modems. ``server``: its public address."""
    service = SERVICE.format(bench=BENCH, operators=OPERATORS, server=server, name=SERVER_NAME)
    return {
        "etc/NetworkManager/conf.d/90-operators.conf": (UNMANAGED.encode(), 0o644),
        f"etc/systemd/system/{UNIT}": (service.encode(), 0o644),
        f"{BENCH}/usb_modems.py": (Path(__file__).with_name("usb_modems.py").read_bytes(), 0o644),
    }


def _timelines(work: Path) -> list[Path]:
    """Radio that stands still; by operator. They go on standing still after their end."""
    folder = work / "timelines"
    folder.mkdir()
    return list(write_timelines(play(load("still", duration_s=10.0, seed=1)), folder).values())[: len(PLACES)]


@contextmanager
def _over(root: Path, work: Path) -> Iterator[Path]:
    """``root`` with what is written to it kept beside."""
    for part in ("made", "upper", "scratch"):
        (work / part).mkdir()
    options = f"lowerdir={root},upperdir={work / 'upper'},workdir={work / 'scratch'}"
    subprocess.run(["mount", "-t", "overlay", "-o", options, "overlay", work / "made"], check=True)
    try:
        yield work / "made"
    finally:
        subprocess.run(["umount", work / "made"], check=True)
