"""Page loads: a row an arm, kind and path."""

from __future__ import annotations

from collections.abc import Sequence

from tandem_server.analysis.reading import flag, mapping, number, text
from tandem_server.analysis.sender_shares import part
from tandem_server.analysis.tables.facts import Facts, numbers
from tandem_server.analysis.tables.view import Figure, Observed, View


def _loads(runs: Sequence[Facts]) -> Observed:
    for run in runs:
        for row in run.listed("loads"):
            sent = part(run.result, text(row, "session"))
            shares = sent or mapping(row, "shares")
            known = [share for path in shares if (share := number(shares, path)) is not None]
            # A load that failed has no time; it counts in the share of those.
            failed = text(row, "failure") is not None
            times = numbers(
                row, "page_load_time_ms", "object_load_time_ms", "first_contentful_paint_ms", "dom_content_loaded_ms"
            )
            yield (
                run,
                {
                    "kind": run.kind,
                    "path": run.path,
                    "by": text(row, "by"),
                    "page": text(row, "page"),
                    **({} if failed else times),
                    **numbers(row, "objects", "bytes", "connections", "connect_ms"),
                    "failed": failed,
                    "most_loaded_share": max(known) if run.kind == "mptcp" and known else None,
                    "shares_side": None if run.kind != "mptcp" or not known else "sender" if sent else "receiver",
                    "fallback": flag(run.result, "fallback") if run.kind == "mptcp" else None,
                },
            )


PAGELOAD = View(
    "pageload",
    "Page loads: by kind and path",
    (("kind", "Kind"), ("path", "Path"), ("by", "Loaded by")),
    (
        Figure("page_load_time_ms", "Page load time", "ms", spread=True),
        Figure("object_load_time_ms", "Object load time", "ms", spread=True),
        Figure("first_contentful_paint_ms", "First paint", "ms"),
        Figure("dom_content_loaded_ms", "DOM content loaded", "ms"),
        Figure("objects", "Objects"),
        Figure("bytes", "Bytes", "B"),
        Figure("connections", "Connections"),
        Figure("connect_ms", "Connect", "ms"),
        Figure("most_loaded_share", "Most loaded path", "share"),
        Figure("shares_side", "counted at", "1", "tally"),
        Figure("failed", "Failed", "share", "share"),
        Figure("fallback", "Fell back", "share", "share"),
    ),
    _loads,
    "Medians over loads; times of loads that came to their end. Browser: navigation to the load event’s end; graph: without a browser,"
    " first connection to the last object’s last byte.",
)
