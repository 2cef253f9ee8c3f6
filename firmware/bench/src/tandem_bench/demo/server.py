"""The real server, started as an operator would: certificate, database, a token for each probe, gateway, endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tandem_bench.demo import configuration
from tandem_bench.rig.programs import READY_S, Programs, once
from tandem_bench.rig.rights import Owner
from tandem_bench.topology.spec import SERVER_NAME


def start_server(
    programs: Programs, command: Callable[..., list[str]], folder: Path, probes: Mapping[str, Path], owner: Owner, influxd: Path,
    address: str, ready_s: float = READY_S,
) -> None:  # fmt: skip
    """``command(*args, capabilities=())``: the line that calls ``tandem-server`` in the server's place. ``folder`` gets ``server.toml``
    and what the server keeps, each probe's folder ``token`` and ``ca.pem``. ``address``: what the certificate is for beside
    ``SERVER_NAME``; ``ready_s``: for each program. ProgramError when one does not start."""
    file, tls = folder / "server.toml", folder / "tls"
    file.write_text(configuration.server_toml(str(influxd)) + configuration.NO_RESERVE)
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
    for place in probes.values():  # the CA's certificate, as an operator would copy it
        (place / "ca.pem").write_text((tls / "ca.pem").read_text())
        owner.give(place / "ca.pem")
