"""Alarms asked of a running database, without Grafana: how each query goes, and what would fire now."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tandem_dashboards.alarms.evaluate.evaluation import Ask, Outcome
from tandem_dashboards.alarms.files import rules_document
from tandem_dashboards.alarms.message import EXTERNAL_URL, Told
from tandem_dashboards.alarms.reading import Rule, rules
from tandem_dashboards.asking import Answer, Database, put
from tandem_dashboards.influx import AskError, AwayError
from tandem_dashboards.questions import Question

_WORDS = ("summary", "since", "do", "board")


@dataclass(frozen=True)
class Finding:
    """One label set of one rule, as one evaluation finds it. ``waits_s``: how long it must go on before people are told.

    ``texts``: ``summary``, ``since``, ``do``, ``board``; of what alerts.
    """

    rule: Rule
    labels: dict[str, str]
    outcome: Outcome
    values: dict[str, float | None]
    error: str
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def waits_s(self) -> int:
        """Of the rule."""
        return self.rule.for_s

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "alarm": self.rule.labels["alarm"],
            "title": self.rule.title,
            "severity": self.rule.labels["severity"],
            "outcome": self.outcome,
            "labels": self.labels,
            "for_s": self.waits_s,
            "error": self.error or None,
            **self.texts,
        }


def asker(database: Database) -> Ask:
    """For the evaluation: an error of the database is an answer, as Grafana takes it. AwayError goes on: nothing can be said then."""

    def ask(influxql: str) -> object:
        try:
            return {"results": [{"series": database.ask(influxql)}]}
        except AwayError:
            raise
        except AskError as error:
            return {"error": str(error)}

    return ask


def ask_alarms(database: Database, at_ms: int) -> list[Answer]:
    """Every query of every rule, as evaluated at ``at_ms`` (UTC). AwayError."""
    return [
        put(database, Question("alarms", "alert", rule.title, ref, query.text), query.expanded(at_ms))
        for rule in rules(rules_document())
        for ref, query in rule.queries.items()
    ]


def findings(database: Database, at_ms: int, external_url: str = EXTERNAL_URL) -> list[Finding]:
    """One evaluation of every rule at ``at_ms`` (UTC)."""
    found = []
    for rule in rules(rules_document()):
        for result in rule.watch().results(asker(database), at_ms):
            texts = {}
            if result.outcome == "Alerting":
                told = Told(rule, result.labels, result.values, at_ms).annotations(external_url)
                texts = {name: told[name] for name in _WORDS}
            labels, values = dict(result.labels), dict(result.values)
            found.append(Finding(rule, labels, result.outcome, values, result.error, texts))
    return found
