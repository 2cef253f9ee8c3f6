"""In the virtual machine: the kit with two modems on USB, real ModemManager beside it; one is unplugged and comes back.

Prints what was seen as one JSON object, in the order of the story; ``test_vm_modems.py`` judges it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from vm.guest import SLOWNESS, Guest, awaited, carrier, evidence, exported, lease, mmcli, told

from tandem.app.daemon.status_socket import NoCollectorError, ask
from tandem.modem.usb import known_devices, network_interface, rules
from tandem_bench.gadget.rig import GadgetRig
from tandem_bench.run import configuration
from tandem_bench.run.programs import Owner, Program, Programs, confined
from tandem_bench.run.rig import ProbePath
from tandem_bench.scenario import load, play
from tandem_bench.topology.spec import SERVER_NAME

PROBE = "probe-1"
WORK = Path("/tmp/kit")  # noqa: S108 - in the machine, whose only user is this test
USB = {"a": "1-1", "b": "2-1"}
"""By path: the device's place on its bus. A slot is a place, whatever is plugged in first and however its ports are numbered."""
TERMINALS = {path: Path(f"/dev/tandem/{place}-at") for path, place in USB.items()}
"""The collector's ports, as the rules that ``tandem modem udev`` prints name them."""
BYTES = 4_000_000
BEGAN_S = time.monotonic()
CARRIER_S = 5.0
"""For an interface that was opened; see ``GadgetRig.tell_link_again``."""
seen: dict[str, Any] = {"took_s": {}, "links_told_again": 0}


@contextlib.contextmanager
def part(name: str) -> Iterator[None]:
    """A part of the story, and how long it took."""
    began_s = time.monotonic()
    print(f"{began_s - BEGAN_S:6.1f} s: {name}", file=sys.stderr, flush=True)
    yield
    seen["took_s"][name] = round(time.monotonic() - began_s, 1)


class Story:
    """The kit on the rig in this machine, whose own network namespace is the probe's."""

    def __init__(self, rig: GadgetRig, programs: Programs, guest: Guest) -> None:
        self.rig, self.programs, self.guest = rig, programs, guest
        self.probe, self.server = WORK / "probe", WORK / "server"
        self.collector: Program | None = None

    def serve(self, *args: str) -> list[str]:
        return self.rig.command("server", confined([sys.executable, "-m", "tandem_server", *args], Owner(0, 0)))

    def start_server(self) -> None:
        config = ["--config", str(self.server / "server.toml")]
        text = configuration.server_toml(os.environ["TANDEM_INFLUXD"]) + configuration.NO_RESERVE
        (self.server / "server.toml").write_text(text)
        once = [
            self.serve(
                "tls", "--folder", str(self.server / "tls"), "--name", SERVER_NAME, "--address", self.rig.server_address
            ),
            self.serve("probe", "add", PROBE, *config, "--token-file", str(self.probe / "token")),
        ]
        for started in [subprocess.Popen(argv, stdout=subprocess.DEVNULL) for argv in once]:
            assert started.wait(120 * SLOWNESS) == 0
        self._parts = [
            self.programs.start(name, self.serve("serve", name, *config))
            for name in ("database", "gateway", "endpoint", "worker")
        ]

    def await_server(self) -> None:
        for program in self._parts:
            program.await_ready(120 * SLOWNESS)
        (self.probe / "ca.pem").write_text((self.server / "tls" / "ca.pem").read_text())

    def start_collector(self) -> None:
        paths = [
            ProbePath(p.name, p.operator, f"of {p.name}", str(p.bearer.gateway), Path(f"at {p.name}"))
            for p in self.rig.paths.values()
        ]
        text = configuration.collector_toml(PROBE, paths, 2.0, 1.0, 1).replace('"simultaneous"', '"off"')
        for path, place in USB.items():
            # By their place only, as on a probe whose modems are renumbered.
            text = text.replace(f'interface = "of {path}"', f'usb = "{place}"')
            text = text.replace(f'port = "at {path}"', f'usb = "{place}"')
        (self.probe / "config.toml").write_text(text)
        told(["chown", "-R", "tandem:tandem", str(self.probe)])
        argv = [sys.executable, "-m", "tandem", "run", "--verbose", "--config", str(self.probe / "config.toml")]
        self.collector = self.programs.start("collector", as_probe(argv))
        self.collector.await_ready(60 * SLOWNESS)

    def status(self) -> dict[str, Any]:
        try:
            return next(iter(ask(self.probe / "status.sock", {"op": "status"}, 10.0)), {})
        except (NoCollectorError, TimeoutError):
            return {}

    def events(self, path: str) -> list[str]:
        return [event["kind"] for event in self.status().get("events", []) if event["path"] == path]

    def since(self, path: str, before: list[str], *kinds: str) -> bool:
        """Whether a path has had events of these ``kinds`` that were not among those ``before``; a missed poll makes some too."""
        now = self.events(path)
        return all(now.count(kind) > before.count(kind) for kind in kinds)

    def heard(self, path: str, what: str) -> dict[str, Any]:
        """What the collector reads of a path's modem from now on."""
        began_s = time.monotonic()

        def polled() -> dict[str, Any] | None:
            modem = self.status().get("modems", {}).get(path) or {"eci": None, "age_s": None}
            known = modem["eci"] is not None and modem["age_s"] is not None
            return modem if known and modem["age_s"] < time.monotonic() - began_s else None

        return awaited(what, polled)

    def await_carrier(self, path: str, interface: str) -> None:
        """Until the interface has its carrier; after CARRIER_S without one the modem says again that its network is there."""
        patience_s = CARRIER_S
        until = time.monotonic() + patience_s

        def has_it() -> bool:
            nonlocal patience_s, until
            if time.monotonic() > until:
                self.rig.tell_link_again(path)
                seen["links_told_again"] += 1
                patience_s *= 2  # what is told again too soon never comes
                until = time.monotonic() + patience_s
            return carrier(interface)

        awaited(f"a carrier on {interface}", has_it)

    def connect(self, path: str) -> dict[str, Any]:
        """Through ModemManager, then an address by DHCP, as a network service does; what ModemManager says of it."""
        device = USB[path]
        modem = awaited(f"ModemManager has {device}", lambda: exported().get(device), every_s=2.0)
        number = modem["path"].rpartition("/")[2]
        # b's is not the one that its modem has as it comes.
        apn = {"a": "internet", "b": "web.example"}[path]
        told(["mmcli", "-m", number, f"--simple-connect=apn={apn},ip-type=ipv4"], 120)
        shown = (mmcli("-m", number) or {})["modem"]
        bearer = (mmcli("-b", shown["generic"]["bearers"][0].rpartition("/")[2]) or {})["bearer"]
        index = list(USB).index(path)
        interface = network_interface(device)
        assert interface is not None
        self.await_carrier(path, interface)
        address = awaited(f"an address on {interface}", lambda: lease(interface, 700 + index), 30)
        return {
            "ports": shown["generic"]["ports"],
            "model": shown["generic"]["model"],
            "state": shown["generic"]["state"],
            "plmn": shown["3gpp"]["operator-code"],
            "interface": bearer["status"]["interface"],
            "interface_at_its_place": interface,
            "connected": bearer["status"]["connected"],
            "method": bearer["ipv4-config"]["method"],
            "address": address,
        }

    def pair(self) -> list[dict[str, Any]]:
        """A paired download, one run after the other; the runs' manifests."""
        argv = [sys.executable, "-m", "tandem", "experiment", "run", "download", "--json", "--pairing", "sequential"]
        # So many bytes and not so many seconds: a run may take as long as this machine takes.
        argv += ["--bytes", str(BYTES), "--config", str(self.probe / "config.toml")]
        answer = json.loads(told(as_probe(argv), 600))
        runs = [json.loads((self.probe / "runs" / f"{run}.json").read_text()) for run in answer["runs"]]
        return [
            {
                "kind": run["kind"],
                "paths": run["paths"],
                "failure": run["failure"],
                "fallback": (run["result"] or {}).get("fallback"),
                "bytes": {f["path"]: f["bytes"] for f in (run["result"] or {}).get("subflows", [])},
            }
            for run in runs
        ]

    def radio(self) -> dict[str, Any]:
        return {path: self.heard(path, f"{path} is polled") for path in USB}


def as_probe(argv: list[str]) -> list[str]:
    """As the probe's service runs it: an ordinary user of the group dialout, with two capabilities."""
    kept = "-all,+net_admin,+net_raw"
    rights = ["--reuid=tandem", "--regid=tandem", "--groups=dialout", "--no-new-privs", f"--inh-caps={kept}"]
    return ["setpriv", *rights, f"--ambient-caps={kept}", f"--bounding-set={kept}", "--", *argv]


def tell(story: Story) -> None:
    rig = story.rig
    with part("server and modems start"):
        story.start_server()
        rig.start_radio()
        story.await_server()
    with part("both connect through ModemManager"):
        seen["connected"] = {path: story.connect(path) for path in USB}
    with part("the collector starts"):
        story.start_collector()
        seen["radio"] = story.radio()
    with part("a pair of downloads"):
        seen["pair"] = story.pair()
    with part("b is unplugged, and plugged in again"):
        before = story.events("b")
        rig.tell("b", {"usb": "unplug"})
        awaited("modem_lost and path_down", lambda: story.since("b", before, "modem_lost", "path_down"))
        awaited("ModemManager has dropped it", lambda: USB["b"] not in exported(), every_s=1.0)
        seen["a_while_b_is_out"] = story.heard("a", "a is polled as before")
        rig.tell("b", {"usb": "plug"})
        awaited("b is there", TERMINALS["b"].exists)
        seen["connected_again"] = {"b": story.connect("b")}
        awaited("b is back", lambda: story.since("b", before, "path_up", "modem_back"))
        seen["radio_again"] = story.radio()
        seen["exported_at_the_end"] = awaited(
            "ModemManager has both", lambda: len(e := exported()) == 2 and sorted(e), every_s=2.0
        )
    with part("all ends"):
        made = story.status()["spool"]["made"]
        seen["spool"] = awaited("all until now is sent", lambda: (s := story.status()["spool"])["sent"] >= made and s)
        assert rig.failed() is None
        assert story.programs.watch() is None
        seen["collector_exit"] = story.programs.end(story.collector, 60 * SLOWNESS).exit if story.collector else None


def main() -> None:
    for folder in (WORK / "probe", WORK / "server", WORK / "bench", WORK / "logs"):
        folder.mkdir(parents=True)
    with part("the system"):
        # A short one: the radio stands still afterwards too.
        played = play(load("still", duration_s=10.0, seed=1))
        seen["cells"] = {n.lower(): sorted(set(t.columns["eci"])) for n, t in played.operators.items()}
        stack = contextlib.ExitStack()
    with stack:
        guest = stack.enter_context(Guest(rules(known_devices())))
        stack.callback(lambda: told(["sh", "-c", f"cp {WORK}/logs/*.log {WORK}/bench/*.log /run/vm/"]))
        with part("ModemManager and networks"):
            guest.modem_manager()
            rig = stack.enter_context(GadgetRig(played, WORK / "bench", Owner(0, 0), ["dummy_udc.0", "dummy_udc.1"]))
            names = "".join(f"nameserver {access.gateway}\n" for access in rig.topology.spec.accesses)
            Path("/etc/resolv.conf").write_text(names, encoding="ascii")
            programs = stack.enter_context(Programs(WORK / "logs"))
        story = Story(rig, programs, guest)
        try:
            tell(story)
        except Exception:
            Path("/run/vm/status.log").write_text(json.dumps(story.status(), indent=1), encoding="utf-8")
            evidence({name: rig.topology.netns_path(name) for name in ("modem-a", "modem-b", "server")})
            raise
    seen["traceback"] = "Traceback" in (WORK / "logs" / "collector.log").read_text()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
