"""DASH: a row an arm, and the course of a play."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tandem_server.analysis.reading import flag, mapping, mappings, number, text
from tandem_server.analysis.tables.facts import Facts, numbers, unasked_share
from tandem_server.analysis.tables.view import Figure, Observed, View

_SEGMENT_S = re.compile(r"([0-9]{1,4})s-")


def rule(run: Facts) -> str:
    """Who chose: a rule of our player's, or VLC's logic."""
    player = mapping(run.result, "player")
    if text(player, "name") == "vlc":
        return f"VLC {text(player, 'logic') or ''}".strip()
    return text(player, "abr") or text(run.parameters, "abr") or ""


def segment_s(run: Facts) -> int | None:
    """Length of a segment by the manifest's name, as ``tandem-server dash build`` names them; None of other content."""
    found = _SEGMENT_S.match(text(run.parameters, "mpd") or "")
    return int(found[1]) if found else None


def _plays(runs: Sequence[Facts]) -> Observed:
    for run in runs:
        if run.result:
            yield (
                run,
                {
                    "kind": run.kind,
                    "segment_s": segment_s(run),
                    "rule": rule(run),
                    "path": run.path,
                    **numbers(
                        run.result, "bitrate_bit_per_s", "goodput_bit_per_s", "startup_delay_ms", "stalls", "stalled_s"
                    ),
                    **numbers(run.result, "stall_ratio", "switches_per_minute", "qoe_linear_per_segment", "media_s"),
                    "stalled": None
                    if number(run.result, "stalls") is None
                    else (number(run.result, "stalls") or 0) > 0,
                    "unasked_share": unasked_share(mappings(run.result, "subflows")),
                    "fallback": flag(run.result, "fallback") if run.kind == "mptcp" else None,
                },
            )


DASH = View(
    "dash",
    "DASH: by kind, length of segment and rule",
    (("kind", "Kind"), ("segment_s", "Segment, s"), ("rule", "Rule"), ("path", "Path")),
    (
        Figure("bitrate_bit_per_s", "Bitrate", "bit/s", spread=True),
        Figure("goodput_bit_per_s", "Goodput", "bit/s"),
        Figure("startup_delay_ms", "Startup", "ms"),
        Figure("stalls", "Stalls"),
        Figure("stalled_s", "Stalled", "s"),
        Figure("stalled", "Plays that stalled", "share", "share"),
        Figure("stall_ratio", "Stall ratio", "share"),
        Figure("switches_per_minute", "Switches", "1/min"),
        Figure("qoe_linear_per_segment", "QoE a segment", "kbit/s"),
        Figure("media_s", "Video", "s"),
        Figure("unasked_share", "Over a path not asked for", "share"),
        Figure("fallback", "Fell back", "share", "share"),
    ),
    _plays,
    "Medians over plays. QoE: linear score of Yin et al. by segment; compare equal lengths."
    " Path: the primary one of MPTCP, the only one of TCP.",
)
