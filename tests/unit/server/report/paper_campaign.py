"""A campaign folder that has something for every figure of the papers. As a program it writes it with its report:
``paper_campaign.py FOLDER``."""

import sys
from pathlib import Path

import numpy as np
from paper_runs import every

from support.synthetic_campaign import Synthetic
from support.synthetic_folder import page_of, write
from tandem_server.analysis.estimates import Array, Histogram, histogram
from tandem_server.analysis.evaluate import Evaluation, evaluate
from tandem_server.analysis.folder import load
from tandem_server.analysis.material import Bins, material
from tandem_server.report.figures.figure import Drawn, draw, write_figures


def made() -> Synthetic:
    """Radio, events and downloads of the made-up commute, and the papers' runs beside them."""
    one = Synthetic()
    for n, at_s in enumerate((96.0, 136.0)):
        for kind, paths in (("mptcp", ["a", "b"]), ("tcp", ["a"]), ("tcp", ["b"])):
            one._run(f"run-9{n}{kind[0]}{paths[0]}", f"pair-9{n}", kind, paths, "simultaneous", at_s, 16.0, 0.5)
    one.manifests += every()
    asked_all_the_time(one)
    return one


def asked_all_the_time(one: Synthetic) -> None:
    for second in range(170):  # three minutes are one window: no interval
        for path, every_nth in (("a", 31), ("b", 17)):
            lost = second % every_nth == 5 or 60 <= second < 63
            told = {"outcome": "lost"} if lost else {"outcome": "answered", "rtt_ms": 25.0 + second % every_nth * 20}
            tags = {"path": path, "operator": one.paths[path]}
            one.record(second, "round_trip", tags, {**told, "sequence": second, "beside_run": False})


def evaluated(folder: Path) -> Evaluation:
    one = made()
    return evaluate(load(write(one, folder)), one.source, one.ledger())


def delays(ms: Array, longer: float = 0) -> Histogram:
    """As the tables have it: milliseconds begun, each once."""
    begun, counts = np.unique(np.ceil(ms - 0.2), return_counts=True)
    return histogram(np.append(begun, np.nan), np.append(counts.astype(float), longer))


def bins(e: Evaluation) -> list[Bins]:
    """What an analysis of the captures of its runs would bring."""
    found = []
    for run in e.runs:
        if run.start_s is None or run.end_s is None or not run.id.startswith("run-"):
            continue
        t = np.arange(run.start_s, run.end_s, 0.1)
        drawn = np.random.default_rng(len(found))
        nothing = np.full(len(t), np.nan)
        found += [
            Bins(run.id, path, t, drawn.gamma(4, 60_000, len(t)), nothing, rtts=delays(drawn.gamma(4, 15, 500)))
            for path in run.paths
        ]
        if run.kind == "mptcp":
            queue = drawn.gamma(2, 90_000, len(t)) * (1 + run.start_s / 60)
            waits = delays(drawn.gamma(0.2, 40 + run.start_s, 900), longer=2)
            found.append(Bins(run.id, None, t, nothing, queue, waits=waits))
    return found


def figures(e: Evaluation, found: list[Bins] | None = None, *, pdf: bool = False) -> list[Drawn]:
    """Every figure of one kit. ``found``: of its captures."""
    return draw(material(e, found), pdf=pdf)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    e = evaluated(place)
    drawn = figures(e, bins(e), pdf=True)
    write_figures(place / "figures", drawn)
    (place / "report.html").write_text(page_of(e, drawn), encoding="utf-8")
    print(place / "report.html")
