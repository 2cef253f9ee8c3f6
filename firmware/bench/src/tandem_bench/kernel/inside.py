"""In the virtual machine: the networks of the bench, server and collector by their own command lines, and what was asked for.

``python3 -m tandem_bench.kernel.inside self-test|downloads|campaign NAME FORM``; leaves ``told.json`` in the folder that it is started
in, and ``kit.tar.gz``: the campaign folder. Exit status: 0, 1 something is not as expected or a run failed, 3 this kernel lacks something.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import time
import tomllib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tandem_bench.kernel import SEED
from tandem_bench.link import Constant, LinkError
from tandem_bench.requirements import MachineError, find_influxd, out_of_tree, require
from tandem_bench.run.configuration import collector_toml, start_server
from tandem_bench.run.folder import PROBE
from tandem_bench.run.programs import COLLECTOR, Owner, ProgramError, Programs, confined
from tandem_bench.run.rig import SERVER_SYSCTLS, ProbePath
from tandem_bench.topology.spec import TopologySpec, commuting
from tandem_bench.topology.topology import Topology

OFFERS = {
    "a": Constant(4e6, 4e6, rtt_ms=20, buffer_down_bytes=100_000, buffer_up_bytes=100_000),
    "b": Constant(2e6, 2e6, rtt_ms=60, buffer_down_bytes=100_000, buffer_up_bytes=100_000),
}
"""What an emulated processor carries, with room to spare."""
DOWNLOADS = (
    {"bytes": 1_000_000, "kind": "mptcp", "path": "a"},
    {"bytes": 1_000_000, "kind": "mptcp", "path": "b"},
    {"bytes": 500_000, "kind": "tcp", "path": "a"},
)
READY_S = 600.0
RUN_S = 3000.0
WAIT_S = 240.0
FOLDER = Path("/run/kit")
MODULES = (
    "tun", "veth", "nft_masq", "nft_chain_nat", "nf_nat", "sch_htb", "sch_netem", "sch_ingress", "ifb", "cls_u32",
    "act_mirred",
)  # fmt: skip
"""Of the distribution's kernel; another one has them built in."""
_RNDADDENTROPY = 0x40085203
"""random(4): bits, bytes, and these."""
_SYSCTLS, _NAMED = Path("/proc/sys"), Path("/run/netns")


class LackError(RuntimeError):
    """This kernel cannot do it; one line that names what is not there."""


def main(arguments: Sequence[str]) -> int:
    """The exit status."""
    told: dict[str, Any] = {
        "linux": os.uname().release,
        "memory": _memory(),
        "failure": "it broke off; stderr.log says where",
    }
    try:
        _seed()
        _prepare()
        if arguments[0] == "self-test":
            told |= _self_test()
        else:
            told |= Kit(FOLDER).play(arguments)
    except (LackError, MachineError, LinkError) as error:
        told["failure"] = str(error)
        told["lacks"] = True
    except ProgramError as error:
        told["failure"] = str(error)
    finally:
        told["memory"] |= {"available_at_end_bytes": _memory()["available_bytes"]}
        _leave(told)
    return 3 if told.get("lacks") else int(told["failure"] is not None or not told.get("ok", False))


def _seed() -> None:
    if Path(SEED).exists():
        content = Path(SEED).read_bytes()
        with Path("/dev/random").open("wb") as generator:
            fcntl.ioctl(generator, _RNDADDENTROPY, struct.pack("ii", 8 * len(content), len(content)) + content)


def _leave(told: dict[str, Any]) -> None:
    if FOLDER.exists():
        with tarfile.open("kit.tar.gz", "w:gz") as archive:
            archive.add(FOLDER, ".", filter=lambda one: None if one.name.endswith((".sock", "/wal")) else one)
    Path("told.json").write_text(json.dumps(told))


def _memory() -> dict[str, int]:
    rows = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return {
        name: int(rows[row].split()[0]) * 1024
        for name, row in (("total_bytes", "MemTotal"), ("available_bytes", "MemAvailable"))
    }


def _prepare() -> None:
    """In the machine's first network namespace, where the v0.94 kernel has its sysctls."""
    if (loader := shutil.which("modprobe")) is not None:
        subprocess.run([loader, "-a", *MODULES], capture_output=True, check=False)  # what has none is found out below
    _NAMED.mkdir(exist_ok=True)
    tried = {
        "TUN (CONFIG_TUN)": ["test", "-e", "/dev/net/tun"],
        "veth pairs (CONFIG_VETH)": ["ip", "link", "add", "try0", "type", "veth", "peer", "name", "try1"],
        "NAT by nftables (CONFIG_NF_TABLES_IPV4, CONFIG_NFT_META, CONFIG_NFT_MASQ_IPV4, CONFIG_NFT_CHAIN_NAT_IPV4)": [
            "nft", "add table ip try; add chain ip try out { type nat hook postrouting priority 100; }; "
            "add rule ip try out oifname try0 masquerade",
        ],
    }  # fmt: skip
    for what, argv in tried.items():
        if subprocess.run(argv, capture_output=True, check=False).returncode != 0:
            raise LackError(f"the kernel has no {what}; hint: build it in (=y)")
    subprocess.run(["ip", "link", "delete", "try0"], check=True)
    subprocess.run(["nft", "delete", "table", "ip", "try"], check=True)
    require()
    if out_of_tree():
        available = (_SYSCTLS / "net/ipv4/tcp_available_congestion_control").read_text().strip()
        settings = {
            **SERVER_SYSCTLS,
            "net.mptcp.mptcp_enabled": "1",
            "net.mptcp.mptcp_path_manager": "fullmesh",
            "net.mptcp.mptcp_scheduler": "default",
            "net.ipv4.tcp_congestion_control": "cubic",
            "net.ipv4.tcp_allowed_congestion_control": available,  # the kit's programs have no CAP_NET_ADMIN in this namespace
            "net.ipv4.tcp_no_metrics_save": "1",
        }
        for name, value in settings.items():
            try:
                _SYSCTLS.joinpath(*name.split(".")).write_text(value + "\n")
            except OSError as error:
                raise LackError(f"{name} = {value}: {error.strerror}; hint: build it in (=y)") from error


def _self_test() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tandem", "kernel", "--self-test", "--json"],
        capture_output=True, text=True, timeout=RUN_S, check=False,
    )  # fmt: skip
    if done.returncode not in (0, 1):
        raise LackError((done.stderr.strip().splitlines() or ["tandem kernel said nothing"])[-1])
    told = json.loads(done.stdout)
    return {"self_test": told, "failure": None, "ok": done.returncode == 0}


class Kit:
    """Server, links of a few Mbit/s, and a collector without modems, in ``folder``, laid out as a campaign folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.owner = folder, Owner.of_caller()
        self.server, self.probe = folder / "server", folder / "probe" / PROBE
        for place in (self.server, self.probe, folder / "logs"):
            place.mkdir(parents=True)
        self.topology = Topology(
            TopologySpec(commuting(OFFERS), log_folder=folder, links_later=True, sysctls={"server": SERVER_SYSCTLS})
        )

    def play(self, asked: Sequence[str]) -> dict[str, Any]:
        """``downloads``, or ``campaign NAME FORM``: what came of it."""
        began_s = time.monotonic()
        with self.topology, Programs(self.folder / "logs") as programs:
            self._start(programs)
            ready_s = time.monotonic() - began_s
            wrong = self._downloads() if asked[0] == "downloads" else self._campaign(*asked[1:])
            died = programs.watch()
        runs = [json.loads(file.read_text()) for file in sorted((self.probe / "runs").glob("*.json"))]
        runs.sort(key=lambda run: int(run.get("started_monotonic_ns") or 0))
        failed = [run for run in runs if run.get("failure")]
        failure = died or wrong or ("no run was made" if not runs else None)
        return {"runs": runs, "ready_s": round(ready_s, 1), "failure": failure, "ok": failure is None and not failed}

    def _tool(self, namespace: str, *words: str, capabilities: Sequence[str] = ()) -> list[str]:
        return self.topology.command(namespace, confined([sys.executable, "-m", *words], self.owner, capabilities))

    def _start(self, programs: Programs) -> None:
        command, address = partial(self._tool, "server", "tandem_server"), str(self.topology.spec.server_addresses[0])
        start_server(programs, command, self.server, {PROBE: self.probe}, self.owner, find_influxd(), address, READY_S)
        self.topology.start_links()
        paths = [ProbePath(a.path, a.operator, a.interface, str(a.gateway), None) for a in self.topology.spec.accesses]
        own = collector_toml(PROBE, paths, 5.0, 1.0, 1, on_mobility_start="off", capture=False)
        (self.probe / "config.toml").write_text(own)
        argv = ("tandem", "run", "--config", str(self.probe / "config.toml"))
        programs.start("collector", self._tool("probe", *argv, capabilities=COLLECTOR), READY_S)

    def _downloads(self) -> str | None:
        wrong = []
        for asked in DOWNLOADS:
            words = [word for name, value in asked.items() for word in (f"--{name}", str(value))]
            wrong.append(self._asked("experiment", "run", "download", *words, "--json"))
        return next((why for why in wrong if why is not None), None)

    def _campaign(self, name: str, form: str) -> str | None:
        command = self._tool("probe", "tandem", "campaign", "show", name)
        told = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
        if told.returncode != 0:
            return (told.stderr.strip().splitlines() or [f"no campaign {name}"])[-1]
        roles = tomllib.loads(told.stdout)["roles"]
        words = [word for role, path in zip(roles, OFFERS, strict=False) for word in ("--path", f"{role}={path}")]
        allowed = () if out_of_tree() else ("--allow-substitutes",)  # there, what the papers had has to be there
        return self._asked("campaign", "run", name, "--form", form, *words, *allowed, "--wait", "--json")

    def _asked(self, *words: str) -> str | None:
        """Have the collector do it; why not, in a line. A run that failed on the network is told by its manifest."""
        # What asks the server over a path binds to its interface, which takes rights before Linux 5.7; on a kit it has root's, by sudo.
        argv = ("tandem", *words, "--config", str(self.probe / "config.toml"))
        command = self._tool("probe", *argv, capabilities=COLLECTOR)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
        except subprocess.TimeoutExpired:
            return f"tandem {words[0]} did not end within {RUN_S:g} s"
        if done.returncode in (0, 1):
            return None
        return (done.stderr.strip().splitlines() or [f"tandem {words[0]}: status {done.returncode}"])[-1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
