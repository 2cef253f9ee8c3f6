"""A whole server on the loopback, as ``tandem-server serve`` runs it."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tandem_server.store import Influx, find_influxd


@dataclass(frozen=True)
class LoneServer:
    """``gateway``, ``control``, ``measurement``: its ports."""

    folder: Path
    gateway: int
    control: int
    measurement: int
    store_port: int

    def store(self) -> Influx:
        password = (self.folder / "influxdb/tandem.password").read_text().strip()
        return Influx(f"http://127.0.0.1:{self.store_port}", "tandem", "tandem", password)


def _command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "tandem_server", *map(str, words)]


@contextlib.contextmanager
def lone_server(folder: Path, name: str, probe: str) -> Iterator[LoneServer]:
    """Serving, with a certificate for ``name``, ``probe`` and its token in ``folder``/token."""
    folder.mkdir()
    reserved = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
    ports = [one.getsockname()[1] for one in reserved]
    for one in reserved:
        one.close()
    config = folder / "server.toml"
    config.write_text(
        f'[listen]\nhost = "127.0.0.1"\ngateway_port = {ports[0]}\ncontrol_port = {ports[1]}\nmeasurement_port = {ports[2]}\n'
        f'[store]\nbinary = "{find_influxd()}"\nport = {ports[3]}\n'
    )
    subprocess.run(_command("tls", "--folder", folder / "tls", "--name", name, "--address", "127.0.0.1"), check=True)
    adding = _command("probe", "add", probe, "--config", config, "--token-file", folder / "token")
    subprocess.run(adding, check=True, stdout=subprocess.DEVNULL)
    with (folder / "serve.log").open("wb") as log:
        serving = subprocess.Popen(_command("serve", "--config", config), stdout=subprocess.PIPE, stderr=log, text=True)
    assert serving.stdout is not None
    try:
        for line in serving.stdout:
            if line.startswith("ready endpoint "):
                break
        else:
            raise AssertionError(f"no server: {(folder / 'serve.log').read_text()[-2000:]}")
        yield LoneServer(folder, *ports)
    finally:
        serving.terminate()
        serving.communicate()
