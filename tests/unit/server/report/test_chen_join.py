"""In place of Chen's simultaneous SYN: what a delayed join costs, by arithmetic done by hand, and what is compared with what."""

import random
from dataclasses import replace

import pytest
from paper_runs import downloaded, manifest

from support.synthetic_campaign import Synthetic
from support.synthetic_folder import write
from tandem_server.analysis.evaluate import evaluate
from tandem_server.analysis.folder import load
from tandem_server.analysis.material import material
from tandem_server.analysis.measured import Download, Setting
from tandem_server.report.figures.figure import every, make
from tandem_server.report.figures.papers.chen import alone_share, saved_by_model, syn_gap_ms
from tandem_server.report.figures.sheet import rows

FIGURE = next(f for f in every() if f.name == "chen-join")
OF = Setting("r", "chen-sizes", "join", "", {"wifi": "a", "cellular": "b"}, {}, ("a", "b"), None, None, None)
ONE = Download(
    OF, "p", "single", "mptcp", "a", "reno", 131072, 2, None, 1.0, 40.0, {"a": 0.5, "b": 0.5}, {}, {},
    {"a": 40.0, "b": 60.0}, {}, join_ms={"b": 160.0},
)  # fmt: skip


def test_the_gap_the_part_before_it_and_the_saving_are_those_of_the_arithmetic():
    assert syn_gap_ms(ONE) == 40 + 160 - 60
    assert alone_share(ONE) == pytest.approx(0.2)
    # a: 0.5 in 0.96 s; b: 0.5 in 0.8 s. At once b begins 0.14 s earlier, so that in t: (t − 0.04) · 0.5/0.96 + (t − 0.06) · 0.5/0.8 = 1
    took = (1 + 0.04 * 0.5 / 0.96 + 0.06 * 0.5 / 0.8) / (0.5 / 0.96 + 0.5 / 0.8)
    assert saved_by_model(ONE) == pytest.approx(1 - took)
    assert saved_by_model(replace(ONE, shares={"a": 1.0, "b": 0.0})) == pytest.approx(0.0)

    for changed in (
        *({name: {}} for name in ("join_ms", "handshake_ms", "shares")),
        *({name: None} for name in ("connect_ms", "duration_s")),
        {"duration_s": 0.1},
    ):
        assert saved_by_model(replace(ONE, **changed)) is None, changed


def runs(r: random.Random):
    for size, held, n in ((s, h, n) for s in (8192, 524288) for h in (False, True) for n in range(5)):
        result = downloaded(r, size, 0.5 if held else 1.0, {"a": 0.6, "b": 0.4}, {"a": 30.0, "b": 70.0}, {})
        if size == 8192:  # over before anything joins
            result["subflows"] = [{**result["subflows"][0], "share": 1.0}]
        if held:
            result["held_ms"] = 90.0
        parameters = {"kind": "mptcp", "path": "a", "bytes": size, "congestion_control": "reno", "subflows": 2,
                      "join_before_request": held}  # fmt: skip
        yield manifest("download", result, parameters, kind="mptcp", roles={"wifi": "a", "cellular": "b"}, arm=int(held),
                       name="chen-sizes", step="join", at_s=10.0 + n)  # fmt: skip


def test_held_downloads_are_compared_here_and_are_in_no_other_figure(tmp_path):
    one = Synthetic(seconds=30.0)
    one.manifests = list(runs(random.Random(1)))
    made = material(evaluate(load(write(one, tmp_path / "campaign")), one.source, one.ledger()))
    assert (len(made.downloads), len(made.held)) == (10, 10)
    sheet = make(FIGURE, made).sheet
    assert sheet is not None
    told = {(row["size_bytes"], row["quantity"]): row for row in rows(sheet) if row.get("quantity")}
    assert (told[8192, "joined"]["y"], told[8192, "joined"]["n"]) == (0, 5)
    assert (8192, "modelled_percent") not in told
    assert told[524288, "joined"]["y"] == 5
    assert told[524288, "syn_gap_ms"]["y"] == pytest.approx(30.0 + 40.0 - 0.7 * 70.0)
    assert told[524288, "measured_percent"]["y"] == pytest.approx(50.0)
    assert (told[524288, "delayed_ms"]["y"], told[524288, "held_ms"]["y"]) == (1000.0, 500.0)
