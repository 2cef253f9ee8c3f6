"""One alarm: its queries, when it fires, and what its message says.

What a probe reported last stands for it while it is silent, and only for as long as it is registered (``known``, ``SEEN``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tandem_dashboards import expressions
from tandem_dashboards.alarms.tolerances import KNOWN_DAYS, SEEN_S, TOLERANCES, Tolerance
from tandem_dashboards.influxql import Select, select

Severity = Literal["critical", "warning", "info"]
"""Somebody should look now / today / some time."""

Beyond = Literal["gt", "gte", "lt", "eq"]

FIRES = "fires"
"""The reference of every alarm's condition."""

LIVE = "/d/tandem-probe?var-probe={{ urlquery .Labels.probe }}"
"""Path and query of the probe's board."""

_KNOWN_S = KNOWN_DAYS * 86_400


class AlarmError(ValueError):
    """An alarm that makes no sense: the message says which and why."""


@dataclass(frozen=True)
class AlarmQuery:
    """A query and how far back it looks."""

    select: Select
    from_s: int


@dataclass(frozen=True)
class Last:
    """The newest value of each series of the query ``of``, nulls left out."""

    of: str


@dataclass(frozen=True)
class Math:
    """``text`` as Grafana has it: ``$a / $b > 0.8``. Operands meet by their labels."""

    text: str


@dataclass(frozen=True)
class Threshold:
    """1 where ``of`` is beyond ``limit``, else 0."""

    of: str
    kind: Beyond
    limit: float


Expression = Last | Math | Threshold


Read = tuple[str, str, AlarmQuery]
"""The reference of a query, that of the newest value of its series, the query."""


@dataclass(frozen=True)
class Alarm:
    """``reads``: what it looks at. ``computes``: a reference and ``Math`` of the values read; without, the first of these is compared. It
    fires while that is beyond (``fires``) the limit of its tolerance.

    ``what``, ``since`` and ``do`` are templates of Grafana's (Go's): ``{{ .Labels.probe }}``, ``{{ .Values.share.Value }}``. No dollar
    sign: provisioning would take it for an environment variable. ``board``: path and query of the board that shows it.
    ``no_data`` is KeepLast but for alarms that say why: when there is no point at all, it is the server that has stopped, and one alarm
    (server-dead) reports that; the others must neither fire forty times nor take back what they reported. For the same reason an error
    keeps the last state everywhere else.
    """

    key: str
    title: str
    severity: Severity
    reads: tuple[Read, ...]
    fires: Beyond
    what: str
    since: str
    do: str
    board: str = LIVE
    computes: tuple[str, str] | None = None
    no_data: Literal["KeepLast", "OK", "Alerting"] = "KeepLast"
    on_error: Literal["KeepLast", "Alerting"] = "KeepLast"
    why_no_data: str = "the server has stopped: server-dead reports that, and the other alarms stay as they were"

    def __post_init__(self) -> None:
        """AlarmError."""
        names = [
            *(name for query, value, _ in self.reads for name in (query, value)),
            *(self.computes or ())[:1],
            FIRES,
        ]
        for name in names:
            if not name.isalpha() or not name.isascii():
                raise AlarmError(f"alarm {self.key}: the reference {name!r} has other characters than letters")
        if len(set(names)) != len(names):
            raise AlarmError(f"alarm {self.key}: two references have one name")
        for text in (self.what, self.since, self.do, self.board):
            if "$" in text:
                raise AlarmError(f"alarm {self.key}: a dollar sign in {text!r}")

    @property
    def uid(self) -> str:
        """As Grafana keeps it: at most 40 characters."""
        return f"tandem-{self.key}"

    @property
    def tolerance(self) -> Tolerance:
        """Of the one table."""
        return TOLERANCES[self.key]

    @property
    def queries(self) -> dict[str, AlarmQuery]:
        """By their reference."""
        return {name: query for name, _, query in self.reads}

    @property
    def expressions(self) -> dict[str, Expression]:
        """By their reference, each after those that it rests on; the last is the condition."""
        found: dict[str, Expression] = {value: Last(query) for query, value, _ in self.reads}
        compared = next(iter(found))
        if self.computes:
            compared, text = self.computes
            found[compared] = Math(text)
        return {**found, FIRES: Threshold(compared, self.fires, self.tolerance.limit)}


def known(
    field: str,
    of: str,
    by: Sequence[str] = ("probe",),
    *,
    points: int = 1,
    function: Callable[[str], expressions.Expression] = expressions.last,
) -> AlarmQuery:
    """``function`` over the newest ``points`` records of each of ``by``, whenever they came: silence takes nothing away."""
    if points == 1:
        return AlarmQuery(select(expressions.last(field), of=of, by=by), _KNOWN_S)
    newest = select(field, of=of, by=by, newest_first=True, limit=points)
    return AlarmQuery(select(function(field), of=newest, by=by, newest_first=True), _KNOWN_S)


def now(field: str, of: str, by: Sequence[str] = ("probe",)) -> AlarmQuery:
    """The newest value of what the server itself writes every minute, if it still does."""
    return AlarmQuery(select(expressions.last(field), of=of, by=by), SEEN_S)


SEEN: Read = ("expected", "seen", now("seen", "expected"))
"""A series for every registered probe, heard of or not: 1 or 0. What is joined with it ends when a probe is taken out, and not before; so a
probe that is silent keeps its alarm, and one that was sold does not."""
