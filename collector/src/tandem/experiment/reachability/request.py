"""What a survey is asked to do: the parameters, and the same as checked values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem.experiment.common_parameters import COMMON, CommonParameters, extended, read_common
from tandem.experiment.parameters import Parameter, ParameterError
from tandem.experiment.reachability.names import DenyList, ListError, NameList, read_deny, read_names
from tandem.mptcp.names import address_of

PARAMETERS = (
    *COMMON,
    Parameter("names", "str", "file of names, rank,domain a line (Tranco's format)", required=True, file=True),
    Parameter("list_id", "str", "the list's own id, stored with the result"),
    Parameter("first", "int", "how many names, from the top", "names", default=10_000, minimum=1, maximum=1e6),
    Parameter("folder", "str", "where journal and rows go; a survey in it is resumed", required=True, file=True),
    Parameter("deny", "str", "file of domains and networks that are left alone", file=True),
    Parameter("resolvers", "object", "path: list of addresses; else they are found", default=None),
    Parameter("dns_port", "int", "of the resolvers", "port", default=53, minimum=1, maximum=65535),
    Parameter("families", "str", "which addresses are asked for", default="46", choices=("4", "6", "46")),
    Parameter("addresses", "int", "of each name, family and path: pinged at most", "addresses", default=16, minimum=1, maximum=64),
    Parameter("port", "int", "that is pinged", "port", default=443, minimum=1, maximum=65535),
    Parameter("pings", "int", "of each address over each path", "pings", default=10, minimum=1, maximum=100),
    Parameter("ping_hz", "float", "pings a second on each path", "1/s", default=50.0, minimum=0.1, maximum=2000),
    Parameter("ping_timeout_s", "float", "for an answer to a ping", "s", default=3.0, minimum=0.1, maximum=60),
    Parameter("question_hz", "float", "DNS questions a second on each path", "1/s", default=100.0, minimum=0.1, maximum=2000),
    Parameter("dns_timeout_s", "float", "for each try of a question", "s", default=2.0, minimum=0.1, maximum=60),
    Parameter("dns_tries", "int", "of a question, the resolvers in turn", "tries", default=3, minimum=1, maximum=10),
    Parameter("batch", "int", "names resolved, then pinged, then written down", "names", default=100, minimum=1, maximum=10_000),
    Parameter("seed", "int", "of the random orders", "seed", default=1, minimum=0, maximum=2**53),
    Parameter("deadline_s", "float", "the whole run; the journal keeps what is done", "s", default=86_400.0, minimum=1, maximum=604_800),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Request(CommonParameters):
    """A survey, checked. ``resolvers``: as told, by path."""

    names: NameList
    list_id: str | None
    folder: Path
    deny: DenyList
    resolvers: dict[str, tuple[str, ...]]
    dns_port: int
    families: str
    addresses: int
    port: int
    pings: int
    ping_hz: float
    ping_timeout_s: float
    question_hz: float
    dns_timeout_s: float
    dns_tries: int
    batch: int
    seed: int
    deadline_s: float

    @property
    def head(self) -> dict[str, Any]:
        """What makes two parts one survey."""
        kept = ("families", "addresses", "port", "pings", "seed")
        return {
            "list": self.names.sha256,
            "names": len(self.names.names),
            "paths": sorted(p.name for p in self.paths),
            **{key: getattr(self, key) for key in kept},
        }


def read(parameters: dict[str, Any]) -> Request:
    """From parameters that are checked one by one; ParameterError for files that cannot be read and what contradicts itself."""
    p = parameters
    common = read_common(p)
    own = dict(p)
    own["names"] = _list("names", p["names"], lambda raw: read_names(raw, p["first"]))
    own["deny"] = _list("deny", p["deny"], lambda raw: read_deny(raw.decode())) if p["deny"] else DenyList()
    own["folder"] = Path(p["folder"])
    own["resolvers"] = resolvers_told(p["resolvers"] or {}, [path.name for path in common.paths])
    return extended(Request, common, own)


def _list(parameter: str, file: str, parse: Any) -> Any:  # noqa: ANN401  either list
    try:
        return parse(Path(file).read_bytes())
    except OSError as error:
        raise ParameterError(f"parameter {parameter!r}: {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ParameterError(f"parameter {parameter!r}: {file}: not UTF-8") from error
    except ListError as error:
        raise ParameterError(f"parameter {parameter!r}: {file}: {error}") from error


def resolvers_told(given: dict[str, Any], paths: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The parameter ``resolvers``: path → list of addresses; ParameterError."""
    found = {}
    for path, addresses in given.items():
        if path not in paths:
            raise ParameterError(f"parameter 'resolvers': {path!r} is none of the paths {', '.join(paths)}")
        if not isinstance(addresses, list) or not addresses:
            raise ParameterError(f"parameter 'resolvers': {path}: a list of addresses is needed, as [\"192.0.2.53\"]")
        for address in addresses:
            if not isinstance(address, str) or address_of(address) is None:
                raise ParameterError(f"parameter 'resolvers': {path}: {address!r} is no IP address")
        found[path] = tuple(addresses)
    return found
