"""Asks the server: does it answer, whose is the token, which version does it expect, does it grant sessions."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit

from tandem.app.config import Config
from tandem.app.preflight.checks import Server
from tandem.experiment.control import Control, ControlError
from tandem.experiment.parameters import ParameterError, read_common
from tandem.export import GatewayAddress, SetupError
from tandem.export.gateway import Answer, CertificateTimeError, Link, LinkError
from tandem.schema.manifest import CHECK_RUN

CONNECT_S, ANSWER_S = 5.0, 10.0
KEPT = "tcp_no_metrics_save"
_GOOD = "good"
_NO_TOKEN = "none"  # noqa: S105  sent where the file holds none, so that the server itself can be asked


def ask_server(config: Config, interfaces: Mapping[str, str]) -> Server:
    """``interfaces``: of the paths that are up. Over each in turn until one brings an answer."""
    try:
        address, wrong = _address(config)
    except SetupError as error:
        return Server(gateway=str(error).partition("; hint: ")[0])
    if not interfaces:
        return Server(gateway="no path is up", control="no path is up", token=wrong)
    told = _of_gateway(address, interfaces)
    if wrong is not None:
        return replace(told, token=wrong)
    return _of_endpoint(config, interfaces, told)


def _address(config: Config) -> tuple[GatewayAddress, str | None]:
    """Where the gateway is, and what is wrong with the token's file; SetupError for what else is wrong."""
    server = config.server
    try:
        return GatewayAddress.of(server.gateway, server.ca_file, server.token_file), None
    except SetupError as error:
        if not str(error).startswith("token_file"):
            raise
        parts = urlsplit(server.gateway)
        tls = ssl.create_default_context(cafile=None if server.ca_file is None else str(server.ca_file))
        address = GatewayAddress(str(parts.hostname), parts.port or 443, tls, _NO_TOKEN)
        return address, str(error).partition("; hint: ")[0]


def _of_gateway(address: GatewayAddress, interfaces: Mapping[str, str]) -> Server:
    reasons = []
    for path in interfaces:
        link = Link(path, partial(interfaces.get, path), address, CONNECT_S, ANSWER_S)
        try:
            return _told(link)
        except CertificateTimeError as error:
            return Server(gateway=str(error).partition("; hint: ")[0], untimely=True)
        except LinkError as error:
            reasons.append(f"over {path}: {error}")
        finally:
            link.close()
    return Server(gateway="; ".join(reasons))


def _told(link: Link) -> Server:
    health = link.ask("GET", "/v1/health", b"", {})
    if health.status != 200:
        return Server(gateway=health.error)
    content = health.content if isinstance(health.content, dict) else {}
    off_s = None if health.date_utc_s is None else round(time.time() - health.date_utc_s, 1)
    server = Server(gateway=None, version=_text(content.get("version")), clock_off_s=off_s)
    who = link.ask("GET", "/v1/probe", b"", {})
    content = who.content if isinstance(who.content, dict) else {}
    whose, expected = _text(content.get("probe")), _text(content.get("collector_version"))
    return replace(server, token=_judged(who), probe=whose, expected=expected)


def _judged(answer: Answer) -> str | None:
    if answer.status == 200:
        return _GOOD
    if answer.status in (401, 403):
        return "the server does not know it, or it was revoked"
    return None


def _text(value: object) -> str | None:
    return value[:100] if isinstance(value, str) else None


def _of_endpoint(config: Config, interfaces: Mapping[str, str], told: Server) -> Server:
    """A session of one byte is opened and closed."""
    paths = [{"name": name, "interface": interface} for name, interface in interfaces.items()]
    asked = {"run": CHECK_RUN, "paths": paths, "server": config.server.parameter, "control_timeout_s": ANSWER_S}
    try:
        control = Control(read_common(asked))
        session = control.open("any", {}, bytes=1, seconds=None)
        control.close(session, CONNECT_S)
    except ParameterError as error:
        return replace(told, control=str(error))
    except ControlError as error:
        if error.status == 429:
            return replace(told, budget=str(error).removeprefix("control channel: "))
        if error.status == 401:  # the gateway says so too: the token's line
            return told
        return replace(told, control=str(error).removeprefix("control channel: "))
    settings = session.answer.get("environment")
    return replace(told, no_metrics_save=_text(settings.get(KEPT)) if isinstance(settings, dict) else None)
