"""In the machine: a probe without a battery for its clock boots in 2021, is set by chronyd, jumps a year ahead in mid-recording, and is set
back. The server, its database and the time are outside (``test_vm_clock.py``). Prints what was seen as one line of JSON.

Arguments: the ports outside of the gateway, the control channel, the measurement, the time (NTP) and the markers.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tandem.app.daemon.status_socket import NoCollectorError, ask

HERE = Path("/run/vm")
PROBE = Path("/run/probe")
HOST = "10.0.2.2"
PATIENCE_S = 600.0
YEAR_S = 365 * 86_400


def told(argv: list[str]) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def started(name: str, argv: list[str]) -> subprocess.Popen[bytes]:
    with (HERE / f"{name}.log").open("wb") as log:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def status() -> dict[str, Any]:
    try:
        return next(iter(ask(PROBE / "status.sock", {"op": "status"}, 10.0)), {})
    except (NoCollectorError, TimeoutError, OSError):
        return {}


def awaited(what: str, so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    until = time.monotonic() + PATIENCE_S
    while True:
        now = status()
        if now and so(now):
            return now
        assert time.monotonic() < until, f"not within {PATIENCE_S} s: {what}: {now}"
        time.sleep(0.5)


def mark(port: int, ended: threading.Event) -> None:
    """Tell CLOCK_MONOTONIC to the outside, which knows the time."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        while not ended.wait(0.1):
            out.sendto(str(time.monotonic_ns()).encode(), (HOST, port))


def configure(gateway: str, control: str, measurement: str) -> None:
    PROBE.mkdir()
    for name in ("ca.pem", "token"):
        (PROBE / name).write_bytes((HERE / name).read_bytes())
    (PROBE / "config.toml").write_text(f"""
[probe]
name = "probe-1"
[server]
gateway = "https://server.tandem.test:{gateway}"
control = "https://server.tandem.test:{control}"
measurement = "http://server.tandem.test:{measurement}"
ca_file = "ca.pem"
token_file = "token"
[[path]]
name = "a"
operator = "A"
interface = "eth0"
gateway = "{HOST}"
[path.modem]
port = "/run/at"
driver = "quectel"
[runs]
on_mobility_start = "off"
[capture]
enabled = false
[clock]
source = "chrony"
""")
    with Path("/etc/hosts").open("a") as hosts:
        hosts.write(f"{HOST} server.tandem.test\n")


def main() -> None:
    gateway, control, measurement, ntp, markers = sys.argv[1:]
    told(["modprobe", "virtio_net"])
    for words in ("link set eth0 up", "address add 10.0.2.15/24 dev eth0", f"route add default via {HOST}"):
        told(["ip", *words.split()])
    seen: dict[str, Any] = {"booted_utc_s": time.time()}
    configure(gateway, control, measurement)
    ended = threading.Event()
    marking = threading.Thread(target=mark, args=(int(markers), ended))
    marking.start()
    modem = [sys.executable, "-m", "tandem_bench", "modem", "--family", "quectel", "--timeline", str(HERE / "timeline")]
    running = [started("modem", [*modem, "--link", "/run/at"])]
    collector = started("collector", [sys.executable, "-m", "tandem", "run", "--config", str(PROBE / "config.toml")])
    running.append(collector)
    try:
        seen["held"] = awaited("records are held", lambda now: now["spool"]["pending"] > 15)
        (HERE / "chrony.conf").write_text(
            f"server {HOST} port {ntp} iburst minpoll 0 maxpoll 0\nmakestep 1 -1\npidfile /run/chronyd.pid\n"
        )
        chronyd = ["/usr/sbin/chronyd", "-d", "-u", "root", "-f", str(HERE / "chrony.conf")]
        running.append(started("chronyd", chronyd))
        held = seen["held"]["spool"]["made"]
        seen["set"] = awaited("held records are sent", lambda now: now["spool"]["sent"] > held)
        seen["jumped_monotonic_ns"] = time.monotonic_ns()
        time.clock_settime(time.CLOCK_REALTIME, time.time() + YEAR_S)
        seen["jumped"] = awaited("the jump is seen", lambda now: len(now["clock"]["steps"]) >= 2)
        made = seen["jumped"]["spool"]["made"]
        seen["back"] = awaited(
            "the clock is set back and records after the jump are sent",
            lambda now: abs(now["clock"]["system_error_ms"]) < 1000 and now["spool"]["sent"] > made + 5,
        )
        # What an unprivileged chronyc says of the same: the collector asks by itself.
        seen["chronyc"] = told(["chronyc", "-c", "-n", "tracking"]).strip()
        seen["now_s"] = time.time()
    finally:
        collector.send_signal(signal.SIGTERM)
        seen["exit"] = collector.wait(PATIENCE_S)
        ended.set()
        marking.join()
        for process in running:
            if process.poll() is None:
                process.terminate()
                process.wait(PATIENCE_S)
    seen["account"] = json.loads((PROBE / "collector.json").read_text())
    print(json.dumps(seen))


if __name__ == "__main__":
    os.umask(0o022)
    main()
