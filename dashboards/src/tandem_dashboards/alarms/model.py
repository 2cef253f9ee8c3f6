"""An alarm as Grafana keeps it: queries and expressions as the SDK's types write them, in the shape that provisioning files have.

Files differ from the API: ``folder`` and ``interval: 60s`` of a group, no ``folderUID`` or ``ruleGroup`` of a rule; relative times in
seconds. The SDK's rule knows no ``KeepLast`` (Grafana has it since 10.4), so the envelope is written here.
"""

from __future__ import annotations

import json

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import expr
from grafana_foundation_sdk.models.dashboard import DataSourceRef

from tandem_dashboards.alarms.alarm import FIRES, Alarm, Asked, Expression
from tandem_dashboards.alarms.evaluate.mathematics import Math
from tandem_dashboards.alarms.evaluate.reduction import Reduce
from tandem_dashboards.alarms.yaml_text import Node
from tandem_dashboards.target import DATASOURCE_UID, Query

EXPRESSIONS = "__expr__"
"""The uid of what is no data source but an expression."""
INTERVAL_S = 60
LINK = "{{ reReplaceAll `/*\\z` `` externalURL }}"
"""Grafana's own address, without a slash at its end."""


def rule(alarm: Alarm) -> dict[str, Node]:
    """One rule of a group."""
    return {
        "uid": alarm.uid,
        "title": alarm.title,
        "condition": FIRES,
        "data": [
            *(_asked(name, asked) for name, asked in alarm.asked.items()),
            *(_reckoned(name, expression) for name, expression in alarm.reckoned.items()),
        ],
        "noDataState": alarm.no_data,
        "execErrState": alarm.on_error,
        "for": f"{alarm.tolerance.for_s}s",
        "annotations": {
            "summary": alarm.what,
            "since": alarm.since,
            "do": alarm.do,
            "board": LINK + alarm.board,
            "tolerance": alarm.tolerance.why,
        },
        "labels": {"severity": alarm.severity, "alarm": alarm.key},
        "isPaused": False,
    }


def _asked(name: str, asked: Asked) -> dict[str, Node]:
    model = _plain(Query(asked.select, "time_series", ref=name))
    return {
        "refId": name,
        "relativeTimeRange": {"from": asked.from_s, "to": 0},
        "datasourceUid": DATASOURCE_UID,
        "model": {**model, "intervalMs": 1000, "maxDataPoints": 43200},
    }


def _reckoned(name: str, expression: Expression) -> dict[str, Node]:
    return {
        "refId": name,
        "relativeTimeRange": {"from": 0, "to": 0},
        "datasourceUid": EXPRESSIONS,
        "model": _plain(_typed(name, expression)),
    }


def _typed(name: str, expression: Expression) -> expr.TypeReduce | expr.TypeMath | expr.TypeThreshold:
    here = DataSourceRef(EXPRESSIONS, EXPRESSIONS)
    if isinstance(expression, Reduce):
        settings = None
        if expression.mode == "dropNN":
            settings = expr.ExprTypeReduceSettings("dropNN")
        elif expression.mode == "replaceNN":
            settings = expr.ExprTypeReduceSettings("replaceNN", expression.replacement)
        return expr.TypeReduce(
            datasource=here, expression=expression.of, ref_id=name, reducer=expression.by, settings=settings
        )
    if isinstance(expression, Math):
        return expr.TypeMath(datasource=here, expression=expression.expression, ref_id=name)
    first, until = expression.condition, expression.until
    recovery = None
    if until is not None:
        recovery = expr.ExprTypeThresholdConditionsUnloadEvaluator(list(until.limits), until.kind)
    evaluator = expr.ExprTypeThresholdConditionsEvaluator(list(first.limits), first.kind)
    condition = expr.ExprTypeThresholdConditions(evaluator=evaluator, unload_evaluator=recovery)
    return expr.TypeThreshold(datasource=here, expression=expression.of, ref_id=name, conditions=[condition])


def _plain(typed: object) -> dict[str, Node]:
    """JSON of an SDK object. TypeError when it has none."""
    read: dict[str, Node] = json.loads(json.dumps(typed, cls=JSONEncoder))
    return read
