"""What a person asks of an experiment on the command line, as the request to measure. Pure but for the parameters' file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tandem.experiment.parameters import Parameter
from tandem.mptcp.steering import POLICIES
from tandem.schema.manifest import CAPTURE_ENDS

OF_DOWNLOAD = ("pairing", "kind", "path", "seconds", "bytes")
"""The collector's own words for a download."""
OWN_OF_DOWNLOAD = ("subflows",)
"""Of the download's own parameters, those that have an option."""


class AskedError(ValueError):
    """One line: what is wrong on the command line, and the mend."""


def options(run: argparse.ArgumentParser) -> None:
    """The options that every experiment takes."""
    own = run.add_argument_group("the experiment's own parameters (tandem experiment describe NAME shows them)")
    own.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="one parameter; JSON, or text; may be repeated"
    )
    own.add_argument(
        "--parameters", type=Path, metavar="FILE.json", help="a JSON object of parameters; --set comes over it"
    )
    own.add_argument("--seed", type=int, metavar="N", help="of its random order; default: the configuration's")
    where = run.add_argument_group("where and under which conditions")
    where.add_argument("--paths", metavar="A,B", help="the paths that it may use; default: all")
    where.add_argument(
        "--steering",
        choices=POLICIES,
        help="when a path is made backup by its radio, in runs by Multipath TCP; default: the configuration's",
    )
    where.add_argument(
        "--capture",
        choices=CAPTURE_ENDS,
        help="where its packets are captured: at the probe, or at the server too; default: the configuration's",
    )
    where.add_argument("--deadline-s", type=float, metavar="S", help="its process is ended then at the latest")
    where.add_argument(
        "--sysctl",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="for this run alone, then put back; net.* only",
    )
    where.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="PATH:KEY=VALUE,…",
        help="for this run alone: down_bit_per_s, up_bit_per_s, down_delay_ms, up_delay_ms, down_loss_percent, "
        "up_loss_percent, queue_ms",
    )


def request_of(args: argparse.Namespace, declared: Sequence[Parameter]) -> dict[str, Any]:
    """The request's parameters; ``declared``: the experiment's. AskedError."""
    given: dict[str, Any] = {n: getattr(args, n) for n in OF_DOWNLOAD if getattr(args, n) is not None}
    special = {n: getattr(args, n) for n in OWN_OF_DOWNLOAD if getattr(args, n) is not None}
    if (given or special) and args.name != "download":
        raise AskedError(
            f"--{next(iter({**given, **special}))} belongs to download; hint: --set KEY=VALUE, as {args.name} names it"
        )
    if args.paths is not None:
        given["paths"] = [name.strip() for name in args.paths.split(",")]
    own = {} if args.parameters is None else _file(args.parameters)
    kinds = {p.name: p.kind for p in declared}
    for name, text in (_split(one, "--set") for one in args.set):
        own[name] = _value(text, kinds.get(name))
    own |= special
    if own:
        given["parameters"] = own
    if args.sysctl:
        given["sysctl"] = dict(_split(one, "--sysctl") for one in args.sysctl)
    if args.shape:
        given["shape"] = dict(_shape(one) for one in args.shape)
    for name in ("seed", "deadline_s", "steering", "capture"):
        if getattr(args, name) is not None:
            given[name] = getattr(args, name)
    return given


def _split(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise AskedError(f"{option} {text!r} is not of the form KEY=VALUE")
    return name.strip(), value.strip()


def _value(text: str, kind: str | None) -> Any:  # noqa: ANN401 any JSON value
    """Text where the parameter is text; else JSON, and text again where it is none: the check of the parameter then says so."""
    if kind == "str":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _shape(text: str) -> tuple[str, dict[str, float]]:
    path, colon, rest = text.partition(":")
    if not colon or not path:
        raise AskedError(f"--shape {text!r} is not of the form PATH:KEY=VALUE,KEY=VALUE")
    shape: dict[str, float] = {}
    for name, value in (_split(one, "--shape") for one in rest.split(",")):
        try:
            shape[name] = float(value)
        except ValueError:
            raise AskedError(f"--shape {text!r}: {value!r} is no number") from None
    return path, shape


def _file(file: Path) -> dict[str, Any]:
    try:
        told = json.loads(file.read_text())
    except OSError as error:
        raise AskedError(f"{file}: {error.strerror}") from error
    except ValueError as error:
        raise AskedError(f"{file}: no JSON: {error}") from error
    if not isinstance(told, dict):
        raise AskedError(f"{file}: holds JSON, but no object of parameters")
    return told
