"""Runs in the virtual machine: the services of a probe's system, and the little that a test does there as its administrator."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
GADGET_MODULES = ("libcomposite", "usb_f_acm", "usb_f_ecm", "cdc_acm", "cdc_ether", "tun", "nft_masq", "nft_chain_nat")
LOGS = Path("/run/services")
LEFT = Path("/run/vm")
"""What lies there at the end is the host's. Writing there is slow, so logs are brought at the end."""

DHCP_SCRIPT = """#!/bin/sh
# busybox udhcpc calls it. One default route an interface, as a probe's network service leaves them: metrics keep them apart.
case $1 in
    deconfig) ip address flush dev "$interface"; ip link set "$interface" up ;;
    bound | renew)
        ip address replace "$ip/$mask" dev "$interface"
        for gateway in $router; do ip route replace default via "$gateway" dev "$interface" metric "$METRIC"; done ;;
esac
"""


SLOWNESS = 8.0
"""An emulated processor on a busy machine takes several times what it takes on an idle one; waiting longer costs a good run nothing."""


def awaited(what: str, condition: Callable[[], T], seconds: float = 120.0, every_s: float = 0.3) -> T:
    """What ``condition`` gives once it is true; AssertionError after ``SLOWNESS`` times ``seconds``. ``every_s``: between looks, more
    where one starts programs: on an emulated processor looking costs what is waited for."""
    until = time.monotonic() + SLOWNESS * seconds
    while not (met := condition()):
        assert time.monotonic() < until, f"not within {SLOWNESS * seconds:.0f} s: {what}"
        time.sleep(every_s)
    return met


def told(argv: Sequence[str], seconds: float = 60.0) -> str:
    """The standard output of a short program that must succeed; ``seconds`` as for ``awaited``."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=SLOWNESS * seconds, check=False)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


class Guest:
    """udevd, D-Bus and ModemManager from entering to leaving. ``rules``: a udev rules file of ours."""

    def __init__(self, rules: str) -> None:
        self._rules = rules
        self._stack = ExitStack()

    def __enter__(self) -> Guest:
        LOGS.mkdir()
        self._stack.callback(lambda: [shutil.copy(log, LEFT) for log in LOGS.iterdir()])
        told(["modprobe", "-a", *GADGET_MODULES])
        told(["mount", "-t", "configfs", "configfs", "/sys/kernel/config"])
        Path("/etc/udev/rules.d/78-tandem-modems.rules").write_text(self._rules, encoding="utf-8")
        Path("/run/udhcpc").write_text(DHCP_SCRIPT, encoding="ascii")
        Path("/run/udhcpc").chmod(0o755)
        self.service("udevd", ["/usr/lib/systemd/systemd-udevd"])
        awaited("udevd answers", lambda: subprocess.run(["udevadm", "control", "--ping"], check=False).returncode == 0)
        told(["udevadm", "trigger", "--action=add"])
        Path("/run/dbus").mkdir(exist_ok=True)
        self.service("dbus", ["dbus-daemon", "--system", "--nofork", "--nopidfile"])
        awaited("D-Bus answers", Path("/run/dbus/system_bus_socket").exists)
        told(["modprobe", "dummy_hcd", "num=2"])
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def service(self, name: str, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a service that ends with the guest; its log is NAME.log."""
        log = self._stack.enter_context((LOGS / f"{name}.log").open("ab"))
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self._stack.callback(_end, process)
        return process

    def modem_manager(self) -> None:
        """Start it: it looks for modems from now on. Without polkitd it does as nobody says."""
        self.service("polkitd", ["/usr/lib/polkit-1/polkitd", "--no-debug"])
        # Without a file of its own it writes to syslog, which nobody hears here: all would go to the console, a slow one.
        self.service("modemmanager", ["/usr/sbin/ModemManager", f"--log-file={LOGS / 'modemmanager.log'}"])
        awaited("ModemManager answers", lambda: mmcli("-L") is not None, every_s=1.0)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def mmcli(*argv: str) -> dict[str, Any] | None:
    """``mmcli --output-json``; None when ModemManager does not answer, or not so."""
    done = subprocess.run(["mmcli", "-J", *argv], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        return None
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def exported() -> dict[str, dict[str, Any]]:
    """ModemManager's modems by the USB device they hang on; their numbers change with every plugging."""
    listed = mmcli("-L") or {"modem-list": []}
    found = {}
    for path in listed["modem-list"]:
        if (shown := mmcli("-m", path.rpartition("/")[2])) is not None:
            generic = shown["modem"]["generic"]
            found[Path(generic["device"]).name] = {"path": path, **generic, "3gpp": shown["modem"]["3gpp"]}
    return found


def evidence(namespaces: Mapping[str, str]) -> None:
    """For a story that went wrong: what networks, processes and the kernel look like, as state.log among the logs.
    ``namespaces``: name → file."""
    looks = ["ip -s -d address", "ip rule", "ip route show table all", "ss -lnp", "nft list ruleset"]
    places = {"the probe": ["sh", "-c"]} | {n: ["nsenter", f"--net={f}", "sh", "-c"] for n, f in namespaces.items()}
    argvs = {f"{name}: {look}": [*enter, look] for name, enter in places.items() for look in looks}
    argvs |= {look: ["sh", "-c", look] for look in ("dmesg", "ps aux", "lsusb -t", "mmcli -L")}
    with (LEFT / "state.log").open("w", encoding="utf-8") as log:
        for name, argv in argvs.items():
            try:
                done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
                log.write(f"===== {name}\n{done.stdout}{done.stderr}")
            except subprocess.TimeoutExpired:  # what went wrong is to be read, not that this machine is slow
                log.write(f"===== {name}: not within 60 s\n")


def carrier(interface: str) -> bool:
    """Open ``interface``, and whether it has a carrier."""
    told(["ip", "link", "set", interface, "up"])
    return (Path("/sys/class/net") / interface / "carrier").read_text() == "1\n"


def lease(interface: str, metric: int) -> str | None:
    """Ask for an address on ``interface`` once; None when there is none to be had."""
    if not (Path("/sys/class/net") / interface).exists():
        return None
    argv = ["busybox", "udhcpc", "-i", interface, "-n", "-q", "-f", "-t", "4", "-T", "1", "-s", "/run/udhcpc"]
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "METRIC": str(metric)}, check=False)
    addresses = json.loads(told(["ip", "-j", "-4", "address", "show", "dev", interface]))
    return addresses[0]["addr_info"][0]["local"] if done.returncode == 0 and addresses[0]["addr_info"] else None
