"""The real endpoint (``tandem-server serve endpoint``) in a namespace, without a database: its sender-side series go nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.two_paths import Space

CONTROL_PORT, MEASUREMENT_PORT, MEASUREMENT_TLS_PORT = 8444, 8480, 8481
REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = os.pathsep.join(str(REPOSITORY / part) for part in ("collector/src", "server/src"))


@contextmanager
def lone_endpoint(
    space: Space,
    address: str,
    folder: Path,
    further: Sequence[str] = (),
    *,
    account: Sequence[str] = (),
    more: str = "",
    path: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Serve at ``address`` from within ``space``; the experiment's parameter ``server``. ``further``: addresses that sessions are told.
    ``account``: the command that gives it another one (nobody's, 65534), which then has the folder; ``more`` of server.toml; ``path``:
    PATH."""
    config = folder / "server.toml"
    listen = f"measurement_tls_port = {MEASUREMENT_TLS_PORT}\nfurther_addresses = {list(further)}"
    config.write_text(f"[listen]\n{listen}\n[store]\n{more}")
    (folder / "influxdb").mkdir(parents=True)
    (folder / "influxdb/tandem.password").write_text("unused")
    program = [sys.executable, "-m", "tandem_server"]
    environment = {**os.environ, "PYTHONPATH": SOURCES, **({} if path is None else {"PATH": path})}
    for args in (
        ("tls", "--folder", folder / "tls", "--name", "server.tandem.test", "--address", address),
        ("probe", "add", "probe-1", "--config", config, "--token-file", folder / "token"),
    ):
        subprocess.run([*program, *map(str, args)], check=True, env=environment, capture_output=True, cwd=folder)
    if account:
        for one in (folder, *folder.rglob("*")):
            os.chown(one, 65534, 65534)
    log = folder / "endpoint.log"
    with (
        log.open("ab") as errors,
        subprocess.Popen(
            [*space.enter, *account, *program, "serve", "endpoint", "--config", str(config)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
            cwd=folder,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            assert any(line.startswith("ready endpoint") for line in process.stdout), log.read_text()
            yield {
                "control": f"https://{address}:{CONTROL_PORT}",
                "measurement": f"http://{address}:{MEASUREMENT_PORT}",
                "token_file": str(folder / "token"),
                "ca_file": str(folder / "tls/ca.pem"),
            }
        finally:
            process.terminate()
            process.wait(30)
