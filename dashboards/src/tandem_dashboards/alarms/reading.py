"""A provisioned rule, read back from its file: what Grafana would evaluate. Tests and the check go by the files, not by the code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tandem_dashboards.alarms.evaluate.evaluation import Ask, Command, Query, Result, evaluate
from tandem_dashboards.alarms.evaluate.mathematics import Math
from tandem_dashboards.alarms.evaluate.reduction import Reduce
from tandem_dashboards.alarms.evaluate.states import Change, Watch
from tandem_dashboards.alarms.evaluate.threshold import Condition, Threshold
from tandem_dashboards.alarms.evaluate.values import ExpressionError

_DURATION = re.compile(r"(\d+)(ms|[smhdwy])")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_536_000}


@dataclass(frozen=True)
class Rule:
    """``nodes`` by reference. ``watch()`` begins with no state."""

    uid: str
    title: str
    condition: str
    nodes: Mapping[str, Query | Command]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    for_s: int
    interval_s: int
    no_data: Any
    on_error: Any
    keep_firing_s: int = 0

    def watch(self) -> Watching:
        """Its states from now on."""
        states = Watch(self.for_s, self.interval_s, self.no_data, self.on_error, self.keep_firing_s)
        return Watching(self, states)

    @property
    def queries(self) -> dict[str, Query]:
        """What it asks the database."""
        return {name: node for name, node in self.nodes.items() if isinstance(node, Query)}


@dataclass
class Watching:
    """A rule that is evaluated again and again."""

    rule: Rule
    states: Watch

    def tick(self, ask: Ask, at_ms: int) -> list[Change]:
        """One evaluation at that time, UTC ms; what changed."""
        return self.states.told(self.results(ask, at_ms), at_ms)

    def results(self, ask: Ask, at_ms: int) -> list[Result]:
        """What an evaluation gives now, before the rule's ``for``."""
        nodes = {
            name: node.told(self.states.firing) if isinstance(node, Threshold) else node
            for name, node in self.rule.nodes.items()
        }
        return evaluate(nodes, self.rule.condition, ask, at_ms)


def rules(document: Mapping[str, Any]) -> list[Rule]:
    """Of a parsed file. ExpressionError names the rule that cannot be read."""
    found = []
    for group in document["groups"]:
        for told in group["rules"]:
            try:
                found.append(_rule(told, seconds(group["interval"])))
            except (KeyError, TypeError, AttributeError, IndexError) as error:
                raise ExpressionError(f"rule {told.get('uid')!r}: {error!r}") from error
    return found


def seconds(duration: str) -> int:
    """``60s``, ``1h30m``, ``0``; ExpressionError for anything else."""
    parts = _DURATION.findall(duration)
    if duration == "0":
        return 0
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        raise ExpressionError(f"no duration: {duration!r}")
    return int(sum(int(number) * _UNITS[unit] for number, unit in parts))


def _rule(told: Mapping[str, Any], interval_s: int) -> Rule:
    return Rule(
        uid=told["uid"],
        title=told["title"],
        condition=told["condition"],
        nodes={part["refId"]: _node(part) for part in told["data"]},
        labels=told.get("labels", {}),
        annotations=told.get("annotations", {}),
        for_s=seconds(told.get("for", "0")),
        interval_s=interval_s,
        no_data=told["noDataState"],
        on_error=told["execErrState"],
        keep_firing_s=seconds(told.get("keepFiringFor", "0")),
    )


def _node(part: Mapping[str, Any]) -> Query | Command:
    model, times = part["model"], part["relativeTimeRange"]
    if part["datasourceUid"] != "__expr__":
        return Query(model["query"], times["from"], times["to"])
    sort = model["type"]
    if sort == "math":
        return Math(model["expression"])
    if sort == "reduce":
        settings = model.get("settings") or {}
        return Reduce(
            model["expression"].removeprefix("$"),
            model["reducer"],
            settings.get("mode") or None,
            settings.get("replaceWithValue", 0.0),
        )
    if sort == "threshold":
        (condition,) = model["conditions"]
        until = condition.get("unloadEvaluator")
        return Threshold(
            model["expression"].removeprefix("$"),
            _condition(condition["evaluator"]),
            None if until is None else _condition(until),
        )
    raise ExpressionError(f"expression {part['refId']}: {sort!r} is not reckoned here")


def _condition(told: Mapping[str, Any]) -> Condition:
    return Condition(told["type"], tuple(told["params"]))
