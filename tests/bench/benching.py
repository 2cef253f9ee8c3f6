"""What the benches share: options, words on stderr, tables, intervals; what running processes used, from /proc."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Column = tuple[str, str, str | Callable[[Row], Any]]
"""A heading, the format of its values (as of ``format``), and where a row has them."""
STUDENT = {
    1: 12.7,
    2: 4.30,
    3: 3.18,
    4: 2.78,
    5: 2.57,
    6: 2.45,
    7: 2.36,
    8: 2.31,
    9: 2.26,
    11: 2.20,
    14: 2.14,
    19: 2.09,
}
"""Student's t by degrees of freedom, two-sided 95 % (as in every table of it); scipy would be a package for this alone."""


def parser(about: str | None, *, json_file: str | None = None) -> argparse.ArgumentParser:
    """With ``--json``: a flag, or the name of a file that has ``json_file``."""
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    if json_file is None:
        made.add_argument("--json", action="store_true", help="print JSON")
    else:
        made.add_argument("--json", type=Path, metavar="FILE", help=json_file)
    return made


def keep(file: Path | None, told: Any, default: Callable[[Any], Any] | None = None) -> None:
    """Write the JSON, when a file was named."""
    if file is not None:
        file.write_text(json.dumps(told, indent=1, default=default) + "\n")


def say(what: str) -> None:
    """What is done now."""
    print(what, file=sys.stderr, flush=True)


def table(columns: Sequence[Column], rows: Sequence[Row]) -> None:
    """Print it; what is None is a dash."""
    cells = [[heading for heading, *_ in columns]]
    for row in rows:
        values = [row[where] if isinstance(where, str) else where(row) for *_, where in columns]
        cells.append(["–" if v is None else format(v, form) for v, (_, form, _) in zip(values, columns, strict=True)])
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    for row in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
    sys.stdout.flush()


def student(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and its 95 % interval, by Student's t; of one value anything may be true."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, -math.inf, math.inf
    freedom = max(k for k in STUDENT if k <= len(values) - 1)
    half = STUDENT[freedom] * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def cpu_s(pid: int) -> float:
    """User and system time of a living process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """The process and all that it started."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            found += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
    return found


def rss_mib(pids: Iterable[int]) -> float:
    """Resident memory; pages that processes share count once for each."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return total * os.sysconf("SC_PAGE_SIZE") / 2**20
