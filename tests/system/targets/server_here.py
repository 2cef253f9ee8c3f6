"""A whole server on the control machine itself, with the hub of the tunnels: for a play where a second machine would take too long.

``tandem-server serve`` out of the checkout, at the server's public address and on its usual ports; the hub is wireguard-go, brought its
peers as by the role ``wireguard_server``. Needs what the ground needs, influxd (TANDEM_INFLUXD) and wireguard-go with wg (in
TANDEM_WIREGUARD's usr/bin, or PATH).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from targets import ground as grounds
from targets.ground import SERVER_NAME, SERVER_PUBLIC, Ground, GroundError

HUB_NETWORK, HUB_ADDRESS, HUB_PORT, HUB = "10.87.0.0/16", "10.87.0.1/16", 51820, "wg-hub"
LOOK_S = 1.0
"""How often it is looked whether another probe enrolled."""


@dataclass(frozen=True)
class ServerHere:
    """It serves. ``folder``: its state."""

    folder: Path

    def said(self, *words: str) -> str:
        """What a command of tandem-server prints; it must succeed."""
        return grounds.run(sys.executable, "-m", "tandem_server", *words, "--config", str(self.folder / "server.toml"))

    def invitation(self, probe: str) -> str:
        return str(json.loads(self.said("probe", "invite", probe, "--json"))["code"])


def _wireguard(name: str) -> str:
    beside = Path(os.environ.get("TANDEM_WIREGUARD", "/nonexistent")) / "usr/bin" / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise GroundError(f"{name} not found; hint: apt-get install wireguard-go wireguard-tools, or TANDEM_WIREGUARD")
    return found


@contextlib.contextmanager
def _hub(server: ServerHere) -> Iterator[None]:
    """The other end of the tunnels, with the peers of the registry."""
    wg, folder = _wireguard("wg"), server.folder
    private = grounds.run(wg, "genkey").strip()
    (folder / "wireguard.pub").write_text(grounds.run(wg, "pubkey", text=private), encoding="ascii")
    ended = threading.Event()

    def bring_peers() -> None:
        before = None
        while not ended.wait(LOOK_S):
            changed = known.stat().st_mtime_ns if known.exists() else None
            if changed != before:
                before = changed
                apply()

    def apply() -> None:
        head = f"[Interface]\nPrivateKey = {private}\nListenPort = {HUB_PORT}\n"
        grounds.run(wg, "syncconf", HUB, "/dev/stdin", text=head + server.said("probe", "peers"))

    known = folder / "wireguard-peers.conf"
    with subprocess.Popen(
        [_wireguard("wireguard-go"), "--foreground", HUB],
        env=os.environ | {"WG_PROCESS_FOREGROUND": "1"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            while subprocess.run([wg, "show", HUB], capture_output=True, check=False).returncode != 0:
                if ended.wait(0.1) or process.poll() is not None:
                    raise GroundError("wireguard-go ended at its start; hint: /dev/net/tun must be there")
            apply()
            grounds.run("ip", "-batch", "-", text=f"address add {HUB_ADDRESS} dev {HUB}\nlink set {HUB} up\n")
            thread = threading.Thread(target=bring_peers)
            thread.start()
            try:
                yield
            finally:
                ended.set()
                thread.join()
        finally:
            process.terminate()


@contextlib.contextmanager
def server_here(ground: Ground) -> Iterator[ServerHere]:
    """Serving, with a certificate for its name, and its authority in the ground's ``ca.pem``."""
    from tandem_server.store import find_influxd

    server = ServerHere(ground.folder / "server-here")
    server.folder.mkdir()
    (server.folder / "server.toml").write_text(
        f'[store]\nbinary = "{find_influxd()}"\n'
        f'[wireguard]\nnetwork = "{HUB_NETWORK}"\nendpoint = "{SERVER_NAME}:{HUB_PORT}"\npublic_key_file = "wireguard.pub"\n',
        encoding="utf-8",
    )
    grounds.run("ip", "address", "add", f"{SERVER_PUBLIC}/24", "dev", "net")
    making = ["tls", "--folder", str(server.folder / "tls"), "--name", SERVER_NAME, "--address", SERVER_PUBLIC]
    grounds.run(sys.executable, "-m", "tandem_server", *making)
    shutil.copy(server.folder / "tls/ca.pem", ground.folder / "ca.pem")
    serving = [sys.executable, "-m", "tandem_server", "serve", "--config", str(server.folder / "server.toml")]
    with (server.folder / "serve.log").open("wb") as log, _hub(server):
        process = subprocess.Popen(serving, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.startswith("ready endpoint "):
                    break
            else:
                raise GroundError(f"no server: {(server.folder / 'serve.log').read_text()[-2000:]}")
            yield server
        finally:
            process.terminate()
            process.communicate()
