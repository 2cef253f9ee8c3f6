"""A campaign in whose midst the probe restarts: in the same boot of the kernel, and in another one, whose monotonic clock begins anew."""

import copy
import json

import pytest

from support.synthetic_campaign import BOOT, PROBE, MemorySource, Row, Synthetic
from support.synthetic_folder import write
from support.synthetic_scenario import START_MONOTONIC_NS, START_UTC_NS
from tandem_server.analysis.evaluate import evaluate
from tandem_server.analysis.folder import load
from tandem_server.analysis.summary import summary

MADE = Synthetic(seconds=180.0)
OTHER = "00000000-aaaa-4bbb-8ccc-000000000002"
GAP = (97.0, 109.0)
"""Seconds in which the probe was off."""


def restarted(other_boot: bool, spool: str | None = None) -> tuple[MemorySource, list[dict], int]:
    """The campaign's records without those of the gap, numbered anew; what came after it in ``other_boot`` with its own clock."""
    shift_ns = START_MONOTONIC_NS + round(GAP[1] * 1e9) - 20 * 10**9
    points, seq = [], 0

    def moved(row: Row, seq: int | None) -> Row:
        after = row.utc_ns >= START_UTC_NS + round(GAP[1] * 1e9)
        tags, fields = dict(row.tags), dict(row.fields)
        if seq is not None:
            fields["seq"] = seq
            if other_boot and after:  # the server's own records stay in its boot
                tags["boot"], fields["monotonic_ns"] = OTHER, int(fields["monotonic_ns"]) - shift_ns
        return Row(row.utc_ns, tags, fields)

    def add(name: str, row: Row, numbered: bool) -> None:
        nonlocal seq
        seq += numbered
        points.append((name, seq if numbered else None, moved(row, seq if numbered else None)))

    begun = False
    for name, number, row in sorted(MADE.source.points, key=lambda point: point[2].utc_ns):
        t = (row.utc_ns - START_UTC_NS) / 1e9
        if GAP[0] <= t < GAP[1] and number is not None:
            continue
        if t >= GAP[1] and not begun:
            begun = True
            at = START_UTC_NS + round(GAP[1] * 1e9)
            fields = {"detail": "started", "monotonic_ns": START_MONOTONIC_NS + round(GAP[1] * 1e9)}
            add("event", Row(at, {"probe": PROBE, "boot": BOOT, "kind": "collector_start"}, fields), numbered=True)
        add(name, row, number is not None)
    if spool is not None:
        for boot in (BOOT, OTHER):
            at = max(row.utc_ns for _, n, row in points if n and row.tags["boot"] == boot)
            mono = next(row.fields["monotonic_ns"] for _, n, row in points if n and row.utc_ns == at)
            row = Row(at, {"probe": PROBE, "boot": boot}, {"spool": spool, "made": seq, "monotonic_ns": mono})
            points.append(("spool", None, row))
    manifests = copy.deepcopy(MADE.manifests)
    for manifest in manifests:
        if other_boot and manifest["started_utc_ns"] >= START_UTC_NS + round(GAP[1] * 1e9):
            manifest["boot"] = OTHER
            for key in ("started_monotonic_ns", "ended_monotonic_ns"):
                manifest[key] -= shift_ns
    return MemorySource(points), manifests, seq


def evaluated(folder, other_boot: bool, told: bool = False, spool: str | None = None, lost: tuple[int, ...] = ()):
    source, manifests, made = restarted(other_boot, spool)
    source.lost.update(lost)
    write(MADE, folder)
    own = folder / "probe" / PROBE
    for manifest in manifests:
        (own / "runs" / f"{manifest['id']}.json").write_text(json.dumps(manifest))
    account = json.loads((own / "collector.json").read_text())
    account["records"] |= {"made": made, "sent": made}
    account["boot"] = OTHER if other_boot else BOOT
    (own / "collector.json").write_text(json.dumps(account))
    if told:
        campaign = json.loads((folder / "campaign.json").read_text())
        (folder / "campaign.json").write_text(json.dumps({**campaign, "boot": BOOT}))
    return evaluate(load(folder), source, MADE.ledger())


@pytest.mark.parametrize("told", [False, True])
def test_a_second_boot_changes_no_score(tmp_path, told):
    same, other = evaluated(tmp_path / "same", False), evaluated(tmp_path / "other", True, told)
    assert other.clock.boot == BOOT
    assert (same.missing, other.missing) == ([], [])
    a, b = summary(same), summary(other)
    for key in ("handovers", "signal_drops", "mobility", "runs", "radio_records", "polls_late", "records"):
        assert b[key] == pytest.approx(a[key]) if key == "mobility" else b[key] == a[key], key
    assert a["records"]["lost"] == b["records"]["lost"] == 0
    assert [round(t, 3) for t in other.recorded.starts] == [GAP[1]]
    assert max(float(s.t_s[-1]) for s in other.recorded.radio.values()) < 181


def test_what_nobody_could_see_is_not_scored(tmp_path):
    whole = evaluate(load(write(MADE, tmp_path / "whole")), MADE.source, MADE.ledger())
    cut = evaluated(tmp_path / "cut", True)
    blind = [h for h in MADE.truth if h["type"] == "handover" and GAP[0] <= h["t_s"] < GAP[1] - 0.5]
    assert blind, "the made-up truth has a handover in the gap"
    assert cut.handover_score.true + cut.handover_score.hidden <= (
        whole.handover_score.true + whole.handover_score.hidden - len(blind)
    )
    assert cut.handover_score.detected == cut.handover_score.true
    assert cut.drop_score.missed == []
    assert cut.handover_score.false == whole.handover_score.false == 0


def test_the_account_is_that_of_all_boots_of_the_spool_and_the_bench_the_boot_of_its_offset(tmp_path):
    made = evaluated(tmp_path / "told", True, spool="aaaaaaaaaaaa", lost=(5, 900))
    assert (made.account.lost, made.account.missing) == (2, [(5, 5), (900, 900)])
    assert made.account.in_database == made.account.made - 2
    made = evaluated(tmp_path / "x", True)
    assert made.clock.boot == BOOT
    assert made.recorded.events[-1].t_s > GAP[1]
