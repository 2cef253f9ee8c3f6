"""What of a play goes into records: how its watcher has it now, once a second, and what it came to at its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol

from tandem.experiment.base import Output, record
from tandem.experiment.dash.play import Play, rounded
from tandem.experiment.dash.playback import Glimpse
from tandem.schema.metrics import DASH

EVERY_S = 1.0
_LOOK_S = 0.1
"""How soon a change of state is seen."""


class Watched(Protocol):
    """A player, as far as its watcher is concerned."""

    play: Play

    def glimpse(self, now_s: float) -> Glimpse:
        """How the play stands at ``now_s`` of its clock. From any thread."""
        ...


class Telling:
    """``with Telling(output, player):`` says ``dash_playback`` records by a thread of its own, the last of them when the block ends."""

    def __init__(self, output: Output, player: Watched) -> None:
        self._output, self._player = output, player
        self._over = threading.Event()
        self._told: tuple[int, Glimpse] | None = None
        self._thread = threading.Thread(target=self._tell, name="playback", daemon=True)

    def __enter__(self) -> Telling:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._look(last=True)

    def _tell(self) -> None:
        self._look()
        while not self._over.wait(_LOOK_S):
            self._look()

    def _look(self, *, last: bool = False) -> None:
        now_ns = time.monotonic_ns()
        seen = self._player.glimpse((now_ns - self._player.play.begun_ns) / 1e9)
        if self._told is not None:
            told_ns, told = self._told
            unchanged = seen == told if last else seen.state == told.state
            if unchanged and (last or now_ns - told_ns < EVERY_S * 1e9):
                return
        self._told = now_ns, seen
        fields = {
            "state": seen.state,
            "buffer_level_ms": rounded(seen.level_s * 1000),
            "played_s": rounded(seen.played_s),
            "stalled_s": rounded(seen.stalled_s),
        }
        play = self._player.play
        record(self._output, "dash_playback", fields, monotonic_ns=now_ns, kind=play.kind, path=play.path)


_RECORDED = frozenset(field.name for field in DASH.fields)


def play_fields(measured: Mapping[str, Any] | None, play: Play, *, whole: bool, content: str) -> dict[str, Any]:
    """The fields of the ``dash`` record. ``measured``: the result, None when no segment came."""
    fields: dict[str, Any] = {"whole": whole, "content": content, "play_s": play.now(), "segments": len(play.shown)}
    if measured is None:
        return fields
    fields |= {name: value for name, value in measured.items() if name in _RECORDED and name != "segments"}
    score = measured["qoe_linear_per_segment"]
    fields["qoe_bit_per_s"] = None if score is None else score * 1000
    carried = {row["path"]: row["share"] for row in measured["subflows"]}
    fields["primary_share"] = carried.get(play.path) if any(carried.values()) else None
    return {name: rounded(value) for name, value in fields.items()}
