"""What does ``tandem watch`` cost the probe and the line to it: time and bytes of one picture, against plain lines of the same status and
against a picture whose columns each bring their own escape sequences?"""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderResult

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "watch"))

from test_watch_view import STATUS

from tandem.cli.view.glyphs import Glyphs, Shown
from tandem.cli.view.plain import Lines, state_line
from tandem.cli.view.screen import screen

TIMES = 50


class Unmerged(Shown):
    """As rich would send it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from console.render(self._inner, options)


def drawn(width: int, height: int, how: type[Shown]) -> str:
    """One picture as it goes to the terminal."""
    console = Console(
        file=io.StringIO(),
        width=width,
        height=height,
        force_terminal=True,
        color_system="standard",
        legacy_windows=False,
    )
    with console.capture() as captured:
        console.print(how(screen(STATUS, width, height), Glyphs("utf-8")), height=height)
    return captured.get()


def milliseconds(work: Callable[[], object]) -> float:
    """CPU of one time."""
    work()
    begun = time.process_time()
    for _ in range(TIMES):
        work()
    return (time.process_time() - begun) / TIMES * 1000


def main() -> int:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    asked = parser.parse_args()
    line_ms = milliseconds(lambda: (Lines().of(STATUS), state_line(STATUS)))
    line_bytes = len(state_line(STATUS).encode()) + 1
    rows = []
    for width, height in ((80, 24), (132, 43)):
        merged, unmerged = (len(drawn(width, height, how).encode()) for how in (Shown, Unmerged))
        cpu_ms = milliseconds(lambda width=width, height=height: drawn(width, height, Shown))
        rows.append(
            {
                "size": f"{width}x{height}",
                "cpu_ms": round(cpu_ms, 2),
                "cpu_by_plain": round(cpu_ms / line_ms, 1),
                "bytes": merged,
                "bytes_by_unmerged": round(merged / unmerged, 2),
                "bytes_by_plain": round(merged / line_bytes, 1),
            }
        )
    if asked.json:
        print(json.dumps({"pictures": rows, "plain": {"cpu_ms": round(line_ms, 3), "bytes": line_bytes}}, indent=1))
        return 0
    print(f"{'size':>8} {'CPU ms':>8} {'x plain':>8} {'bytes':>8} {'x unmerged':>11} {'x plain':>8}")
    for r in rows:
        print(
            f"{r['size']:>8} {r['cpu_ms']:>8} {r['cpu_by_plain']:>8} {r['bytes']:>8} {r['bytes_by_unmerged']:>11} {r['bytes_by_plain']:>8}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
