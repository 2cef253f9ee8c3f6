"""The provisioning files of alarms, ``dashboards/provisioning/alerting/``: rules, contact points, policies, quiet hours, message templates.

Files differ from the API: ``folder`` and ``interval: 60s`` of a group, no ``folderUID`` or ``ruleGroup`` of a rule; relative times in
seconds. The SDK's rule knows no ``KeepLast`` (Grafana has it since 10.4), so the envelope is written here. Addresses come from the
environment of the Grafana server: ``TANDEM_ALARM_MAIL`` (several with ``;``) and ``TANDEM_ALARM_WEBHOOK``. A file a way, so that whoever
has no webhook leaves that file out; both speak as one contact point.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import expr
from grafana_foundation_sdk.models.dashboard import DataSourceRef

from tandem_dashboards.alarms import GROUPS
from tandem_dashboards.alarms.alarm import FIRES, Alarm, AlarmQuery, Expression, Last, Math
from tandem_dashboards.panel import DATASOURCE_UID, Query

Node = str | int | float | bool | None | Mapping[str, "Node"] | Sequence["Node"]
Document = dict[str, Node]

CONTACT = "Tandem"
FOLDER = "Tandem"
NIGHT = "Tandem: night"
EXPRESSIONS = "__expr__"
"""The uid of what is no data source but an expression."""
INTERVAL_S = 60
LINK = "{{ reReplaceAll `/*\\z` `` externalURL }}"
"""Grafana's own address, without a slash at its end."""

_MADE = "Made by python -m tandem_dashboards generate; change tandem_dashboards/alarms instead."

TITLE = '{{ template "tandem.title" . }}'
MESSAGE = '{{ template "tandem.message" . }}'

TEMPLATE = """\
{{ define "tandem.title" -}}
{{ if .Alerts.Firing }}{{ .CommonLabels.alertname }}: {{ len .Alerts.Firing }}
{{- if .Alerts.Resolved }}, over: {{ len .Alerts.Resolved }}{{ end }}
{{- else }}Over: {{ .CommonLabels.alertname }}{{ end }}
{{- end }}
{{ define "tandem.message" -}}
{{ range .Alerts.Firing -}}
{{ .Labels.severity }}: {{ .Labels.alertname }}
What:  {{ .Annotations.summary }}
Since: {{ .Annotations.since }} Told since {{ .StartsAt.UTC.Format "2006-01-02 15:04" }} UTC.
Do:    {{ .Annotations.do }}
Board: {{ .Annotations.board }}

{{ end -}}
{{ range .Alerts.Resolved -}}
Over: {{ .Labels.alertname }}{{ if .Labels.probe }}, probe {{ .Labels.probe }}{{ end }}
{{- if .Labels.path }}, modem {{ .Labels.path }}{{ end }} ({{ .StartsAt.UTC.Format "2006-01-02 15:04" }} to
{{- " " }}{{ .EndsAt.UTC.Format "15:04" }} UTC)
{{ end -}}
{{ end }}
"""
"""``alertname`` is the rule's title. No dollar sign: provisioning would take it for an environment variable."""


def rules_document() -> Document:
    """All groups, as Grafana reads them."""
    return {
        "apiVersion": 1,
        "groups": [
            {
                "orgId": 1,
                "name": name,
                "folder": FOLDER,
                "interval": f"{INTERVAL_S}s",
                "rules": [rule(alarm) for alarm in alarms],
            }
            for name, alarms in GROUPS.items()
        ],
    }


def texts() -> dict[str, str]:
    """File name → text. By mail needs [smtp] in grafana.ini; the webhook is a POST of JSON for chat bridges, pagers, own programs."""
    mail: Document = {"addresses": "${TANDEM_ALARM_MAIL}", "singleEmail": True, "subject": TITLE, "message": MESSAGE}
    webhook: Document = {"url": "${TANDEM_ALARM_WEBHOOK}", "httpMethod": "POST", "title": TITLE, "message": MESSAGE}
    no_mail, no_webhook = "Leave it out if nobody is told by mail.", "Leave it out if there is no webhook."
    templates: Document = {"apiVersion": 1, "templates": [{"orgId": 1, "name": "tandem", "template": TEMPLATE}]}
    return {
        "rules.yaml": to_yaml(rules_document(), _MADE),
        "contact-mail.yaml": to_yaml(_contact("mail", "email", mail), f"{_MADE}\n{no_mail}"),
        "contact-webhook.yaml": to_yaml(_contact("webhook", "webhook", webhook), f"{_MADE}\n{no_webhook}"),
        "policies.yaml": to_yaml(_POLICIES, _MADE),
        "quiet-hours.yaml": to_yaml(_QUIET, _MADE),
        "templates.yaml": to_yaml(templates, _MADE),
    }


def rule(alarm: Alarm) -> dict[str, Node]:
    """One rule of a group."""
    return {
        "uid": alarm.uid,
        "title": alarm.title,
        "condition": FIRES,
        "data": [
            *(_query(name, query) for name, query in alarm.queries.items()),
            *(_expression(name, expression) for name, expression in alarm.expressions.items()),
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


def _query(name: str, query: AlarmQuery) -> dict[str, Node]:
    model = _plain(Query(query.select, "time_series", ref=name))
    return {
        "refId": name,
        "relativeTimeRange": {"from": query.from_s, "to": 0},
        "datasourceUid": DATASOURCE_UID,
        "model": {**model, "intervalMs": 1000, "maxDataPoints": 43200},
    }


def _expression(name: str, expression: Expression) -> dict[str, Node]:
    return {
        "refId": name,
        "relativeTimeRange": {"from": 0, "to": 0},
        "datasourceUid": EXPRESSIONS,
        "model": _plain(_typed(name, expression)),
    }


def _typed(name: str, expression: Expression) -> expr.TypeReduce | expr.TypeMath | expr.TypeThreshold:
    here = DataSourceRef(EXPRESSIONS, EXPRESSIONS)
    if isinstance(expression, Last):
        dropped = expr.ExprTypeReduceSettings("dropNN")
        return expr.TypeReduce(datasource=here, expression=expression.of, ref_id=name, reducer="last", settings=dropped)
    if isinstance(expression, Math):
        return expr.TypeMath(datasource=here, expression=expression.text, ref_id=name)
    evaluator = expr.ExprTypeThresholdConditionsEvaluator([expression.limit], expression.kind)
    conditions = [expr.ExprTypeThresholdConditions(evaluator=evaluator)]
    return expr.TypeThreshold(datasource=here, expression=expression.of, ref_id=name, conditions=conditions)


def _plain(typed: object) -> dict[str, Node]:
    """JSON of an SDK object. TypeError when it has none."""
    read: dict[str, Node] = json.loads(json.dumps(typed, cls=JSONEncoder))
    return read


_POLICIES: Document = {
    "apiVersion": 1,
    "policies": [
        {
            "orgId": 1,
            "receiver": CONTACT,
            "group_by": ["grafana_folder", "alertname"],
            "group_wait": "5m",
            "group_interval": "15m",
            "repeat_interval": "1d",
            "routes": [
                {
                    "receiver": CONTACT,
                    "object_matchers": [["severity", "=", "critical"]],
                    "group_wait": "30s",
                    "group_interval": "5m",
                    "repeat_interval": "4h",
                },
                {
                    "receiver": CONTACT,
                    "object_matchers": [["severity", "=", "info"]],
                    "repeat_interval": "7d",
                    "mute_time_intervals": [NIGHT],
                },
            ],
        }
    ],
}
"""Alarms of one kind go together, so that a server that was away does not send forty messages.

Critical: at once, again every four hours. Warning: within five minutes, again once a day. Info: not at night, again once a week.
"""

_NIGHTS: list[Node] = [{"start_time": "21:00", "end_time": "24:00"}, {"start_time": "00:00", "end_time": "06:00"}]
"""UTC: change it for a fleet far from Greenwich (``location`` is a name of the time zone database)."""
_QUIET: Document = {
    "apiVersion": 1,
    "muteTimes": [{"orgId": 1, "name": NIGHT, "time_intervals": [{"times": _NIGHTS, "location": "UTC"}]}],
}


def _contact(key: str, sort: str, settings: Document) -> Document:
    receiver: Document = {"uid": f"tandem-{key}", "type": sort, "settings": settings, "disableResolveMessage": False}
    return {"apiVersion": 1, "contactPoints": [{"orgId": 1, "name": CONTACT, "receivers": [receiver]}]}


# --- YAML


def to_yaml(document: Mapping[str, Node], comment: str = "") -> str:
    """YAML as provisioning files are written: blocks, two spaces, every text in double quotes (as JSON has it), long ones as blocks.
    ``comment`` at its head, a line each. ValueError for what YAML cannot keep."""
    head = [f"# {line}".rstrip() for line in comment.splitlines()]
    return "\n".join([*head, *_mapping(document, 0)]) + "\n"


def _mapping(node: Mapping[str, Node], depth: int) -> list[str]:
    lines: list[str] = []
    for key, value in node.items():
        lines += _entry("  " * depth + f"{_key(key)}:", value, depth + 1)
    return lines


def _entry(head: str, value: Node, depth: int) -> list[str]:
    if isinstance(value, str):
        if "\n" in value.rstrip("\n"):
            mark = "|" if value.endswith("\n") else "|-"
            return [f"{head} {mark}", *(("  " * depth + line).rstrip() for line in value.rstrip("\n").split("\n"))]
    elif isinstance(value, Mapping) and value:
        return [head, *_mapping(value, depth)]
    elif isinstance(value, Sequence) and value:
        return [head, *(line for item in value for line in _item(item, depth))]
    return [f"{head} {_flow(value)}"]


def _item(item: Node, depth: int) -> list[str]:
    lead = "  " * depth + "- "
    if isinstance(item, Mapping) and item:
        first, *rest = _mapping(item, depth + 1)
        return [lead + first[len(lead) :], *rest]
    return [lead + _flow(item)]


def _flow(node: Node) -> str:
    if isinstance(node, str):
        return _quoted(node)
    if isinstance(node, Mapping):
        return "{" + ", ".join(f"{_quoted(key)}: {_flow(value)}" for key, value in node.items()) + "}"
    if isinstance(node, Sequence):
        return "[" + ", ".join(_flow(item) for item in node) + "]"
    return _scalar(node)


def _quoted(value: str) -> str:
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(c if c == " " or c.isprintable() else f"\\U{ord(c):08X}" for c in quoted)


def _scalar(value: float | bool | None) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} has no place in a provisioning file")
    text = json.dumps(value)
    # YAML 1.1 takes 1e-9 for a text: an exponent needs a point before it.
    return text.replace("e", ".0e") if isinstance(value, float) and "e" in text and "." not in text else text


def _key(key: str) -> str:
    return key if key.replace("_", "").isalnum() and key.isascii() else json.dumps(key)
