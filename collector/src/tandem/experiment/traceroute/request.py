"""What a traceroute is asked: the parameters, and the same as checked values."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tandem.experiment.common_parameters import COMMON, CommonParameters, read_common
from tandem.experiment.parameters import Parameter, ParameterError
from tandem.experiment.traceroute import as_table

PARAMETERS = (
    *COMMON,
    Parameter("protocol", "str", "of the probes; TCP goes where UDP is dropped", default="both", choices=("udp", "tcp", "both")),
    Parameter("udp_port", "int", "at the server, where nobody listens", "port", default=33434, minimum=1, maximum=65535),
    Parameter("hops", "int", "at most", "hops", default=30, minimum=1, maximum=64),
    Parameter("tries", "int", "probes for each hop", "probes", default=3, minimum=1, maximum=10),
    Parameter("probe_timeout_s", "float", "for each probe", "s", default=1.0, minimum=0.05, maximum=10),
    Parameter("silent_hops", "int", "in a row that end a trace", "hops", default=6, minimum=1, maximum=64),
    Parameter("as_table", "str", "file of prefix,AS lines, for comparing by autonomous system", file=True),
    Parameter("deadline_s", "float", "the whole run", "s", default=600.0, minimum=1, maximum=7200),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Request(CommonParameters):
    """A traceroute over each of ``paths``, checked."""

    protocol: str
    udp_port: int
    hops: int
    tries: int
    probe_timeout_s: float
    silent_hops: int
    as_table: as_table.AsTable | None
    deadline_s: float

    @property
    def protocols(self) -> tuple[str, ...]:
        """In order."""
        return ("udp", "tcp") if self.protocol == "both" else (self.protocol,)


def read(parameters: dict[str, Any]) -> Request:
    """From parameters that are checked one by one; ParameterError when the table cannot be read."""
    common = read_common(parameters)
    shared = {f.name: getattr(common, f.name) for f in fields(CommonParameters)}
    own = {f.name: parameters[f.name] for f in fields(Request) if f.name not in shared}
    file = own["as_table"]
    if file is not None:
        try:
            own["as_table"] = as_table.read(Path(file).read_bytes())
        except OSError as error:
            raise ParameterError(f"parameter 'as_table': {file}: {error.strerror}") from error
        except as_table.TableError as error:
            raise ParameterError(f"parameter 'as_table': {file}: {error}") from error
    return Request(**shared, **own)
