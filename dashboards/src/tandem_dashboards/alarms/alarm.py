"""One alarm: what is asked, when it fires, and what people are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tandem_dashboards.alarms.evaluate.mathematics import Math
from tandem_dashboards.alarms.evaluate.reduction import Reduce
from tandem_dashboards.alarms.evaluate.states import ErrorState, NoDataState
from tandem_dashboards.alarms.evaluate.threshold import Condition, Threshold
from tandem_dashboards.alarms.tolerances import TOLERANCES, Tolerance
from tandem_dashboards.influxql import Select

Severity = Literal["critical", "warning", "info"]
"""Somebody should look now / today / some time."""

FIRES = "fires"
"""The reference of every alarm's condition."""

KEPT = "KeepLast"


class AlarmError(ValueError):
    """An alarm that makes no sense: the message says which and why."""


@dataclass(frozen=True)
class Asked:
    """A query and how far back it looks."""

    select: Select
    from_s: int


Expression = Reduce | Math | Threshold


@dataclass(frozen=True)
class Alarm:
    """``asked`` and ``reckoned`` by reference (letters only); the last of ``reckoned`` is the condition ``fires``.

    ``what``, ``since`` and ``do`` are templates of Grafana's (Go's): ``{{ .Labels.probe }}``, ``{{ .Values.share.Value }}``. No dollar
    sign: provisioning would take it for an environment variable. ``board``: path and query of the board that shows it.
    ``no_data`` is KeepLast but for alarms that say why: when there is no point at all, it is the server that has stopped, and one alarm
    (server-dead) tells so; the others must neither fire forty times nor take back what they told. For the same reason an error keeps
    the last state everywhere else.
    """

    key: str
    title: str
    severity: Severity
    asked: Mapping[str, Asked]
    reckoned: Mapping[str, Expression]
    what: str
    since: str
    do: str
    board: str
    no_data: NoDataState = "KeepLast"
    on_error: ErrorState = "KeepLast"
    why_no_data: str = field(default="the server has stopped: server-dead tells so; what was told stays")

    def __post_init__(self) -> None:
        """AlarmError."""
        names = [*self.asked, *self.reckoned]
        if not self.reckoned or names[-1] != FIRES:
            raise AlarmError(f"alarm {self.key}: its last expression is not called {FIRES!r}")
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


def limit_of(key: str) -> float:
    """What the alarm ``key`` compares with."""
    return TOLERANCES[key].limit


def above(of: str, limit: float) -> Threshold:
    """Fires while ``of`` is greater."""
    return Threshold(of, Condition("gt", (limit,)))


def at_least(of: str, limit: float) -> Threshold:
    """Fires while ``of`` is as great, or greater."""
    return Threshold(of, Condition("gte", (limit,)))


def below(of: str, limit: float) -> Threshold:
    """Fires while ``of`` is less."""
    return Threshold(of, Condition("lt", (limit,)))


def exactly(of: str, wanted: float) -> Threshold:
    """Fires while ``of`` is that."""
    return Threshold(of, Condition("eq", (wanted,)))


def last(of: str) -> Reduce:
    """The newest value of a query's series, nulls left out."""
    return Reduce(of, "last", "dropNN")
