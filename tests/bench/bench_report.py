"""Time and size of a report over campaigns of many runs: synthetic folders, without a database.

``python tests/bench/bench_report.py [RUNS …]``
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "report"))

from synthetic_results import MAKERS, write

from tandem_server.analysis.evaluate import evaluate
from tandem_server.analysis.folder import load
from tandem_server.report.csv_files import files
from tandem_server.report.page import render


def main() -> None:
    """A line a number of runs."""
    wanted = [(int(a), names) for a in sys.argv[1:] or ["100", "1000"] for names in (tuple(MAKERS), ("download",))]
    for runs, names in wanted:
        with tempfile.TemporaryDirectory() as name:
            folder = write(Path(name) / "campaign", runs, names)
            begun = time.monotonic()
            evaluation = evaluate(load(folder), "no database", "no ledger")
            read = time.monotonic()
            page = render(evaluation)
            drawn = time.monotonic()
            size = sum(len(content) for content in files(evaluation.results).values())
            print(
                f"{runs} runs of {len(names)} experiments: read {read - begun:.2f} s,"
                f" page {drawn - read:.2f} s and {len(page) / 1e3:.0f} kB,"
                f" CSV {time.monotonic() - drawn:.2f} s and {size / 1e3:.0f} kB"
            )


if __name__ == "__main__":
    main()
