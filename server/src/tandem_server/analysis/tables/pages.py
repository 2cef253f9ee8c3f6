"""Page loads: a row an arm, and the distribution of load times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tandem_server.analysis.reading import mapping, number, text
from tandem_server.analysis.tables.facts import Facts, numbers
from tandem_server.analysis.tables.view import Figure, Observed, View

_MEASURES = {"browser": "page load", "graph": "object load"}


def measure(row: Mapping[str, Any]) -> str:
    """What a load's time is: a browser's page load time, or the time of the object graph alone."""
    return _MEASURES.get(text(row, "by") or "", "")


def load_ms(row: Mapping[str, Any]) -> float | None:
    """The time of a load that reached its end."""
    return number(row, "page_load_time_ms" if row.get("by") == "browser" else "object_load_time_ms")


def loads(runs: Sequence[Facts]) -> Iterator[tuple[Facts, dict[str, Any]]]:
    """Every load of every run."""
    for run in runs:
        for row in run.listed("loads"):
            yield run, row


def _observed(runs: Sequence[Facts]) -> Observed:
    for run, row in loads(runs):
        yield (
            run,
            {
                "measure": measure(row),
                "kind": run.kind,
                "path": run.path,
                "load_ms": load_ms(row),
                **numbers(row, "first_contentful_paint_ms", "dom_content_loaded_ms", "objects", "objects_failed"),
                **numbers(row, "objects_missed", "bytes", "connections", "connect_ms"),
                "share_of_path": number(mapping(row, "shares"), run.path),
                "failed": text(row, "failure") is not None,
            },
        )


PAGES = View(
    "pageload",
    "Page loads: by measure, kind and path",
    (("measure", "Measure"), ("kind", "Kind"), ("path", "Path")),
    (
        Figure("load_ms", "Load time", "ms", spread=True),
        Figure("first_contentful_paint_ms", "First paint", "ms"),
        Figure("dom_content_loaded_ms", "DOM loaded", "ms"),
        Figure("objects", "Objects"),
        Figure("objects_failed", "Failed objects"),
        Figure("objects_missed", "Not stored"),
        Figure("bytes", "Bytes", "B"),
        Figure("connections", "Connections"),
        Figure("connect_ms", "Connect", "ms"),
        Figure("share_of_path", "Share of the path", "share"),
        Figure("failed", "Failed loads", "share", "share"),
    ),
    _observed,
    "A value is a load. Page load: by the browser, to the load event’s end. Object load: the object graph without a browser, to the last"
    " object. Path: the primary one of MPTCP, the only one of TCP; its share is of the bytes until then.",
)
