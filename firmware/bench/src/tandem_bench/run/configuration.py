"""The real server and collector as an operator would set them up: their configuration, and the server's start."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from tandem_bench.run.programs import READY_S, Owner, Programs, once
from tandem_bench.run.rig import ProbePath
from tandem_bench.topology.spec import SERVER_NAME

GATEWAY_PORT, CONTROL_PORT, MEASUREMENT_PORT, DATABASE_PORT = 8443, 8444, 8480, 8086

NO_RESERVE = """
[traces]
reserve_bytes = 0
"""
"""For the rehearsal's ``server.toml``: on a nearly full disk a server refuses records to keep its reserve; the rehearsal has one of its
own, which it frees for the last records."""


def server_toml(influxd: str) -> str:
    """``server.toml``; paths in it are relative to the file."""
    return f"""[listen]
host = "0.0.0.0"
gateway_port = {GATEWAY_PORT}
control_port = {CONTROL_PORT}
measurement_port = {MEASUREMENT_PORT}

[tls]
certificate = "tls/server.pem"
key = "tls/server.key"

[store]
kind = "private"
binary = {json.dumps(influxd)}
folder = "influxdb"
port = {DATABASE_PORT}
database = "tandem"

[registry]
file = "registry.sqlite"

[capture]
allowed = true
"""


def start_server(
    programs: Programs, command: Callable[..., list[str]], folder: Path, probes: Mapping[str, Path], owner: Owner, influxd: Path,
    address: str, ready_s: float = READY_S,
) -> None:  # fmt: skip
    """``command(*args, capabilities=())``: the line that calls ``tandem-server`` in the server's place. ``folder`` gets ``server.toml``
    and what the server keeps, each probe's folder ``token`` and ``ca.pem``. ``address``: what the certificate is for beside
    ``SERVER_NAME``; ``ready_s``: for each program. ProgramError when one does not start."""
    file, tls = folder / "server.toml", folder / "tls"
    file.write_text(server_toml(str(influxd)) + NO_RESERVE)
    owner.give(file)
    config = ("--config", str(file))
    once(
        "tandem-server tls", command("tls", "--folder", str(tls), "--name", SERVER_NAME, "--address", address), ready_s
    )
    programs.start("database", command("serve", "database", *config), ready_s)
    for name, place in probes.items():
        add = command("probe", "add", name, *config, "--token-file", str(place / "token"))
        once("tandem-server probe add", add, ready_s)
    programs.start("gateway", command("serve", "gateway", *config), ready_s)
    programs.start("endpoint", command("serve", "endpoint", *config, capabilities=owner.endpoint), ready_s)
    programs.start("worker", command("serve", "worker", *config), ready_s)
    for place in probes.values():  # the CA's certificate, as an operator would copy it
        (place / "ca.pem").write_text((tls / "ca.pem").read_text())
        owner.give(place / "ca.pem")


def collector_toml(
    probe: str,
    paths: list[ProbePath],
    run_seconds: float,
    pause_s: float,
    seed: int,
    *,
    on_mobility_start: str = "simultaneous",
    capture: bool = True,
    capture_bytes: int = 500_000_000,
) -> str:
    """``config.toml`` of the probe: the paper's detector, and unless said otherwise simultaneous pairs when mobility starts."""
    parts = [
        f"""[probe]
name = {json.dumps(probe)}
folder = "."

[server]
gateway = "https://{SERVER_NAME}:{GATEWAY_PORT}"
control = "https://{SERVER_NAME}:{CONTROL_PORT}"
measurement = "http://{SERVER_NAME}:{MEASUREMENT_PORT}"
ca_file = "ca.pem"
token_file = "token"
"""
    ]
    parts.extend(_path(path) for path in paths)
    parts.append(f"""
[polling]
period_s = 1.0

[mobility]
quantity = "rsrp_dbm"
threshold_db = 6.0
stop_after_s = 10.0

[runs]
on_mobility_start = "{on_mobility_start}"
seconds = {run_seconds}
pause_s = {pause_s}
minimum_gap_s = 20.0
seed = {seed}
primary = "random"

[capture]
enabled = {"true" if capture else "false"}
snaplen_bytes = 128
budget_bytes = {capture_bytes}

[export]
drain_s = 30.0

[clock]
source = "system"

[sysctl]
"net.mptcp.blackhole_timeout" = 0
""")
    return "".join(parts)


def _path(path: ProbePath) -> str:
    lines = [
        "",
        "[[path]]",
        f'name = "{path.name}"',
        f"operator = {json.dumps(path.operator)}",
        f'interface = "{path.interface}"',
        "day_bytes = 1_000_000_000_000",
    ]
    if path.gateway:
        lines.append(f'gateway = "{path.gateway}"')
    if path.modem_port:
        lines += ["", "[path.modem]", f"port = {json.dumps(str(path.modem_port))}", 'driver = "auto"']
    return "\n".join(lines) + "\n"
