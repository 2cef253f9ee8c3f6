"""A run's manifest: what was requested, with what, when, what came of it, and which files belong to it.

JSON, one file a run, ``<run id>.json``. Times are UTC nanoseconds (``_utc_ns``, None before the clock was synchronised) and
CLOCK_MONOTONIC nanoseconds of ``boot`` (``_monotonic_ns``).

2026-11-21: ``clock``: at the end ``synchronised``, ``vouched``, ``source``, ``offset_ns`` (UTC less CLOCK_MONOTONIC), ``error_ms``,
``age_s``, ``system_error_ms``, ``trouble``; ``steps`` during the run (``monotonic_ns``, ``step_s``). Times are brought up to date when
the manifest is sent.
2026-11-21: ``campaign`` may have ``push``.
2026-11-21: runs of any experiment: kind ``any``, whose result's keys are the experiment's own; ``usage`` and ``conditions``.
2026-11-24: ``environment`` has ``experiment.server``: the settings of the server's kernel, as it reported them with the session.
2026-11-26: ``campaign`` has ``form`` instead of ``short``; ``timezone`` and ``utc_offset_s``.
2026-11-26: ``campaign`` has ``sha256``; ``environment`` may have ``city``, as the configuration names it.
2026-11-26: ``server_captures``.
"""

from __future__ import annotations

import os
import re
from typing import Any, Literal, NotRequired, TypedDict

FORMAT = "tandem-run/1"

PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
"""Ids of runs, names of presentations and pages: a file or a folder is called so, too, and it is neither hidden nor a path."""

CHECK_RUN = "preflight"
"""The name of the session that the hand-out check opens and closes: no run, nothing is promised of it."""

ROUND_TRIPS_RUN = "round-trips"
"""The name of the sessions over which round trips are measured all the time: no run either."""

RunKind = Literal["mptcp", "tcp", "any"]
"""``mptcp`` and ``tcp``: downloads over one connection; ``any``: another experiment, which may open connections of both kinds."""
Pairing = Literal["sequential", "simultaneous", "single"]
CaptureEnds = Literal["probe", "both"]
"""Where a run's packets are captured: at the probe as configured, or at the server too."""
CAPTURE_ENDS: tuple[CaptureEnds, ...] = ("probe", "both")


class SubflowResult(TypedDict):
    """One subflow of a run. ``share`` 0 to 1 of the run's received bytes; ``rtt_ms_median`` as the probe could know it."""

    subflow: str
    path: str | None
    operator: str | None
    bytes: int
    share: float
    rtt_ms_median: float | None
    join_delay_ms: float | None


class SubflowLoss(TypedDict):
    """A subflow that a living connection lost. ``back_after_ms``: None when it did not come back while the connection lived."""

    path: str | None
    at_monotonic_ns: int
    back_after_ms: float | None


class RunResult(TypedDict):
    """What was measured. ``bytes`` is payload; ``duration_s`` from connect to the last payload byte or, for runs bounded by time, to
    the end of that time. ``subflow_losses``: of an MPTCP run, absent where the kernel's events were not heard."""

    bytes: int
    duration_s: float
    goodput_bit_per_s: float
    connect_ms: float | None
    first_byte_ms: float | None
    fallback: bool
    subflows: list[SubflowResult]
    subflow_losses: NotRequired[list[SubflowLoss]]


class Failure(TypedDict):
    """Why the network failed, and whether trying again makes sense."""

    reason: str
    retry: bool


class RunFile(TypedDict):
    """A file of the run: ``name`` relative to the probe's folder."""

    name: str
    bytes: int
    sha256: str
    packets: int | None


class ServerCapture(TypedDict):
    """The server's capture of one session, of a run that requested both ends'. ``name``: as the server keeps it among the run's files
    (``tandem.schema.trace.server_capture``), None where there is none, and then ``why``; ``session`` None: none opened, or unknown.
    ``truncated``: the server's quota, or what ``why`` says, ended it early."""

    session: str | None
    name: str | None
    bytes: int | None
    sha256: str | None
    packets: int | None
    packets_dropped: int | None
    truncated: bool
    why: str | None


class PathUsage(TypedDict):
    """Bytes that the kernel counted on the path's interface during the run, headers and everybody's traffic included."""

    received: int
    sent: int


class Usage(TypedDict):
    """What the run cost. ``shared_by_pair``: the runs of a simultaneous pair are counted together."""

    paths: dict[str, PathUsage]
    shared_by_pair: bool


class Conditions(TypedDict):
    """What was made for this run and undone after it. ``sysctl``: by name ``asked``, ``before``, ``now`` (when set) and ``at_end``;
    ``shape``: by path ``interface``, ``asked`` (tandem.shaping) and ``held``, whether it lasted to the end."""

    sysctl: dict[str, dict[str, Any]]
    shape: dict[str, dict[str, Any]]


class CampaignRun(TypedDict):
    """Which run of which campaign it was. ``push``: its id, when the server pushed it; ``roles``: by role the path; ``substituted``: by
    ``scheduler`` or parameter what was ``asked`` and ``used``, where a kernel has not what the campaign requires: then it is no
    repetition of the paper's measurement; ``timezone``: the IANA name of the zone of its windows and days; ``utc_offset_s``: that zone's
    local time less UTC at the run's start, None before the clock was synchronised; ``sha256``: of the campaign's file."""

    name: str
    form: str
    step: str
    number: int
    repetition: int
    arm: int
    attempt: int
    label: str | None
    roles: dict[str, str]
    substituted: dict[str, dict[str, Any]]
    timezone: str
    utc_offset_s: int | None
    sha256: NotRequired[str]
    push: NotRequired[str]


class Manifest(TypedDict):
    """See the module. ``paths``: the path of a TCP run, the primary path first for MPTCP; all that an experiment might use else."""

    format: str
    id: str
    pair: str
    pairing: Pairing
    kind: RunKind
    paths: list[str]
    probe: str
    boot: str
    trigger: str
    experiment: dict[str, Any]
    parameters: dict[str, Any]
    seed: int | None
    started_utc_ns: int | None
    ended_utc_ns: int | None
    started_monotonic_ns: int
    ended_monotonic_ns: int
    environment: dict[str, Any]
    modems: dict[str, dict[str, Any]]
    clock: dict[str, Any]
    records: dict[str, int]
    result: RunResult | dict[str, Any] | None
    failure: Failure | None
    files: list[RunFile]
    server_captures: NotRequired[list[ServerCapture]]
    usage: NotRequired[Usage]
    conditions: NotRequired[Conditions]
    steering: NotRequired[dict[str, Any]]
    campaign: NotRequired[CampaignRun]


def new_id(prefix: str) -> str:
    """A random id that sorts nowhere and collides never: ``prefix-`` and 12 hex digits."""
    return f"{prefix}-{os.urandom(6).hex()}"
