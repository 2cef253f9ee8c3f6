"""In the virtual machine: the controllers are loaded, a transfer over two subflows has each of them on both, they are removed.

One JSON line by controller: what ``ss`` lists of the sender's subflows, bytes received; at the end what is left."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
SERVER, SECOND = "127.0.0.1", "127.0.0.2"
MPTCP, TCP_CONGESTION, PATIENCE_S = 262, 13, 300.0
BYTES = 2_000_000


def kit(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tandem_server", "congestion", *words], capture_output=True, text=True, check=False
    )
    return f"{done.returncode} {done.stdout}{done.stderr}"


def subflows(port: int, controller: str) -> int:
    told = subprocess.run(["ss", "-tinH", f"sport = :{port}"], capture_output=True, text=True, check=True).stdout
    return len(re.findall(rf"^\s.*\b{controller} ", told, re.MULTILINE))


def transfer(controller: str) -> dict[str, object]:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP) as listener:
        listener.bind((SERVER, 0))
        listener.listen()
        port = listener.getsockname()[1]
        received = 0

        def receive() -> None:
            nonlocal received
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP) as client:
                client.connect((SERVER, port))
                while chunk := client.recv(1 << 16):
                    received += len(chunk)

        reader = threading.Thread(target=receive)
        reader.start()
        connection, _ = listener.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, controller.encode())
            until = time.monotonic() + PATIENCE_S
            while (found := subflows(port, controller)) < 2 and time.monotonic() < until:
                connection.sendall(bytes(1000))  # the join follows the first acknowledged byte
                time.sleep(0.1)
            connection.sendall(bytes(BYTES))
            connection.shutdown(socket.SHUT_WR)
            reader.join()
            return {"controller": controller, "subflows": found, "received": received >= BYTES}


def main() -> int:
    for command in (f"ip address add {SECOND}/8 dev lo", f"ip mptcp endpoint add {SECOND} dev lo subflow"):
        subprocess.run(command.split(), check=True)
    print(json.dumps({"kernel": Path("/proc/sys/kernel/osrelease").read_text().strip(), "load": kit("load")}))
    for controller in ("lia", "olia", "balia"):
        print(json.dumps(transfer(controller)), flush=True)
    print(json.dumps({"unload": kit("unload"), "available": AVAILABLE.read_text().split()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
