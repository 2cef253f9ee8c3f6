"""Runs in the machine as a service: two modems on USB (the bench's, by the kernel's gadget stack) and the operators behind them.

    modem a (place 1-1) ── modem-a 192.168.8.1 ──┐
                                                 ├─ namespace "operators" ── eth1 203.0.113.1 ── net
    modem b (place 2-1) ── modem-b 192.168.9.1 ──┘

What the kit has of it are two USB devices. ``usb_modems.py serve OPERATORS SERVER NAME`` is the service (addresses, and the server's
name); ``usb_modems.py tell PATH unplug|plug`` pulls a plug.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
RUN = Path("/run/usb-modems")
PLACES = {"a": "1-1", "b": "2-1"}
NETWORKS = {"a": "192.168.8", "b": "192.168.9"}
SPACE = "operators"
MODULES = ("libcomposite", "usb_f_acm", "usb_f_ecm", "cdc_acm", "cdc_ether")
LOOK_EVERY_S = 4.0
AGAIN_S = 6.0
"""usbnet now and then loses the word that there is a network (seen with 6.1): a modem without a carrier says it again after so long."""


def run(*argv: str, text: str = "") -> None:
    subprocess.run(argv, check=True, input=text, text=True)


def operators(address: str) -> None:
    """The namespace with the second card in it."""
    run("ip", "netns", "add", SPACE)
    run("ip", "link", "set", "eth1", "netns", SPACE)
    lines = [f"address add {address}/24 dev eth1", "link set eth1 up", "link set lo up"]
    run("ip", "-n", SPACE, "-batch", "-", text="\n".join(lines) + "\n")
    run("ip", "netns", "exec", SPACE, "sysctl", "-qw", "net.ipv4.ip_forward=1")


def modem(number: int, path: str) -> subprocess.Popen[str]:
    """The bench's modem on the controller of that number, not yet plugged in everywhere."""
    argv = [
        *(sys.executable, "-m", "tandem_bench", "gadget", "modem", "--family", "ublox", "--name", f"tandem-{path}"),
        *("--timeline", str(HERE / f"timeline-{path}.jsonl"), "--operator-name", f"Operator {path.upper()}"),
        *("--udc", f"dummy_udc.{number}", "--control", str(RUN / f"{path}.sock")),
    ]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def inside(path: str) -> str:
    """The modem's end of the wire, in the operators' namespace."""
    return f"modem-{path}"


def network(path: str, made: str, host: str) -> subprocess.Popen[str]:
    """What is behind the plug: an address, a DHCP server, a resolver. ``made``: what the kernel called the modem's end of the wire."""
    base, interface = NETWORKS[path], inside(path)
    # The kernel gives the next modem the name that this one leaves free.
    run("ip", "link", "set", made, "netns", SPACE, "name", interface)
    lines = [f"address add {base}.1/24 dev {interface}", f"link set {interface} up"]
    run("ip", "-n", SPACE, "-batch", "-", text="\n".join(lines) + "\n")
    argv = [
        "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--log-facility=-", "--user=root", "--leasefile-ro",
        "--dhcp-authoritative", "--no-ping", "--no-resolv", "--no-hosts", "--bind-interfaces", "--except-interface=lo",
        f"--interface={interface}", f"--host-record={host}", f"--dhcp-range={base}.100,{base}.100,255.255.255.0,120",
    ]  # fmt: skip
    return subprocess.Popen(["ip", "netns", "exec", SPACE, *argv], text=True)


def carrier(path: str) -> bool | None:
    """Of the kit's interface at this place; None while it has none that is up."""
    for folder in Path("/sys/bus/usb/devices").glob(f"{PLACES[path]}:*/net/*"):
        try:
            return (folder / "carrier").read_text() == "1\n"
        except OSError:  # not up, or gone
            return None
    return None


def watch(parts: Sequence[subprocess.Popen[str]]) -> None:
    """Until a part ends. A modem whose interface stays without a carrier says again that its network is there."""
    without: dict[str, float] = {}
    while all(part.poll() is None for part in parts):
        now = time.monotonic()
        for path in PLACES:
            if carrier(path) is not False:
                without.pop(path, None)
            elif now - without.setdefault(path, now) > AGAIN_S:
                print(f"{path}: its network is told of again", flush=True)
                again = f"link set {inside(path)} down\nlink set {inside(path)} up\n"
                run("ip", "-n", SPACE, "-batch", "-", text=again)
                without.pop(path)
        time.sleep(LOOK_EVERY_S)


def serve(address: str, server: str, name: str) -> int:
    """The service. It ends when one of its parts does."""
    RUN.mkdir(exist_ok=True)
    run("modprobe", "-a", *MODULES)
    run("modprobe", "dummy_hcd", f"num={len(PLACES)}")
    operators(address)
    modems = {path: modem(number, path) for number, path in enumerate(PLACES)}
    servers = []
    for path, process in modems.items():
        assert process.stdout is not None
        word, _, made = process.stdout.readline().strip().partition(" ")
        if word != "ready":
            return 1
        servers.append(network(path, made, f"{name},{server}"))
        print(f"{path}: plugged in after {time.clock_gettime(time.CLOCK_BOOTTIME):.0f} s", flush=True)
    watch([*modems.values(), *servers])
    return 1


def tell(path: str, wish: str) -> int:
    """``unplug`` or ``plug``."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(RUN / f"{path}.sock"))
        client.sendall(json.dumps({"usb": wish}).encode() + b"\n")
        with client.makefile() as answers:
            answer = json.loads(answers.readline())
    print(answer)
    return 0 if answer["ok"] else 1


if __name__ == "__main__":
    sys.exit({"serve": serve, "tell": tell}[sys.argv[1]](*sys.argv[2:]))
