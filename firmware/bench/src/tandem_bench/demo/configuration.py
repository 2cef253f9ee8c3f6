"""The configuration files that the rehearsal writes for the real programs, as an operator would write them."""

from __future__ import annotations

import json

from tandem_bench.rig.rig import ProbePath
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
