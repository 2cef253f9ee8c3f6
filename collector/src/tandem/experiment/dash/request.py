"""What a play is asked to do: the parameters, and the same as checked values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tandem.experiment.common_parameters import COMMON, CommonParameters, extended, read_common
from tandem.experiment.dash.abr import CUSHION, RESERVOIR
from tandem.experiment.parameters import Parameter, ParameterError
from tandem.experiment.socket_options import SOCKET_OPTIONS, SocketOptions, read_socket_options
from tandem.mptcp.sockets import Kind

RULES = ("fixed", "throughput", "bba", "bola-e", "dynamic")
PLAYERS = ("own", "vlc", "auto")
VLC_LOGICS = ("predictive", "nearoptimal", "rate", "lowest", "highest")
"""VLC 3's own names, less ``fixedrate``, which is ``abr`` fixed. Its default is nearoptimal."""

PARAMETERS = (
    *COMMON,
    Parameter("kind", "str", "Multipath TCP over all paths, or TCP over one", required=True, choices=("mptcp", "tcp")),
    Parameter("path", "str", "the primary path of MPTCP, the only one of TCP", required=True),
    Parameter("content", "str", "the presentation's name on the server (tandem-server dash build)", default="synthetic"),
    Parameter("mpd", "str", "its manifest", default="6s-number.mpd"),
    Parameter("player", "str", "our own; VLC; auto: VLC where one is installed, else our own", default="own", choices=PLAYERS),
    Parameter("vlc_logic", "str", "with player vlc: its --adaptive-logic, in place of abr", default="rate", choices=VLC_LOGICS),
    Parameter("abr", "str", "who chooses the representation", default="dynamic", choices=RULES),
    Parameter("fixed_index", "int", "with abr fixed: which, 0 for the lowest bitrate", "1", default=0, minimum=0, maximum=499),
    Parameter("seconds", "float", "how much of the video to play; by default all", "s", minimum=0.1, maximum=86400),
    Parameter("startup_buffer_s", "float", "playback begins with so much in the buffer", "s", default=2.0, minimum=0, maximum=60),
    Parameter("resume_buffer_s", "float", "and goes on after a stall with so much", "s", default=2.0, minimum=0, maximum=60),
    Parameter("buffer_max_s", "float", "no request that would fill it beyond", "s", default=60.0, minimum=1, maximum=600),
    Parameter("stable_buffer_s", "float", "of bola-e and dynamic", "s", default=12.0, minimum=1, maximum=600),
    Parameter("bba_reservoir_s", "float", "by default 90/240 of buffer_max_s", "s", minimum=0.1, maximum=600),
    Parameter("bba_cushion_s", "float", "by default 126/240 of buffer_max_s", "s", minimum=0.1, maximum=600),
    Parameter("attempts", "int", "for each request, over connections of its own", "1", default=3, minimum=1, maximum=10),
    Parameter("sample_hz", "float", "readings of the kernel's statistics", "1/s", default=10.0, minimum=1, maximum=100),
    *SOCKET_OPTIONS,
    Parameter("connect_timeout_s", "float", "for each measured connection", "s", default=15.0, minimum=0.1, maximum=120),
    Parameter("stall_s", "float", "without a byte for so long a request has failed", "s", default=10.0, minimum=0.5, maximum=600),
    Parameter("deadline_s", "float", "the whole run", "s", default=1500.0, minimum=1, maximum=90000),
)  # fmt: skip

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


@dataclass(frozen=True, slots=True)
class Request(CommonParameters):
    """A play, checked. ``paths`` has the primary first. ``seconds`` None: all of it."""

    kind: Kind
    content: str
    mpd: str
    player: str
    vlc_logic: str
    abr: str
    fixed_index: int
    seconds: float | None
    startup_buffer_s: float
    resume_buffer_s: float
    buffer_max_s: float
    stable_buffer_s: float
    bba_reservoir_s: float
    bba_cushion_s: float
    attempts: int
    sample_hz: float
    options: SocketOptions
    connect_timeout_s: float
    stall_s: float
    deadline_s: float

    @property
    def used(self) -> tuple[str, ...]:
        """The names of the paths that the connection may use."""
        return tuple(path.name for path in (self.paths if self.kind == "mptcp" else self.paths[:1]))


def read(parameters: dict[str, Any]) -> Request:
    """From parameters that are checked one by one to a request; ParameterError when they contradict each other."""
    p = dict(parameters)
    for name in ("content", "mpd"):
        if not _NAME.match(p[name]):
            raise ParameterError(
                f"parameter {name!r}: {p[name][:40]!r} is not a name of letters, digits, '.', '_', '-'"
            )
    for name in ("startup_buffer_s", "resume_buffer_s"):
        if p[name] > p["buffer_max_s"]:
            raise ParameterError(f"parameter {name!r}: {p[name]:g} s is above buffer_max_s, {p['buffer_max_s']:g} s")
    if p["bba_reservoir_s"] is None:
        p["bba_reservoir_s"] = RESERVOIR * p["buffer_max_s"]
    if p["bba_cushion_s"] is None:
        p["bba_cushion_s"] = CUSHION * p["buffer_max_s"]
    if p["bba_reservoir_s"] + p["bba_cushion_s"] > p["buffer_max_s"]:
        raise ParameterError("parameters 'bba_reservoir_s' and 'bba_cushion_s': together above buffer_max_s")
    p["options"] = read_socket_options(p)
    common = read_common(p, p["path"])
    return extended(Request, common, p)
