"""The ledger for people: at most 100 columns, totals below."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from tandem_server.ledger.numbers import SpoolAccount
from tandem_server.ledger.reader import Ledger
from tandem_server.ledger.runs import RunRow, totals
from tandem_server.ledger.watching import ProbeNow
from tandem_server.utc import MINUTE, duration, utc

WIDTH = 100
_RANGES = 12


def lines(ledger: Ledger, *, incomplete: bool = False) -> Iterator[str]:
    """The runs, the probes with their spools, the totals; ``incomplete``: only what lacks something."""
    shown = [row for row in ledger.runs if row.missing or not incomplete]
    if shown:
        yield f"{'ended':<17} {'run':<18} {'probe':<14} {'kind':<6} {'state':<9} {'records':>15} {'files':>9}"
    for row in shown:
        yield from _run(row)
    for trace in ledger.unpromised:
        yield from _wrapped(f"never promised: {trace.probe} {trace.name} ({trace.bytes} bytes), of run {trace.run}", "")
    if shown or ledger.unpromised:
        yield ""
    for one in ledger.probes:
        mine = [account for account in ledger.accounts if account.probe == one.probe.name]
        short = [a for a in mine if a.lacks(ledger.made_utc_ns, ledger.tolerances.unsent_after_s)]
        if incomplete and not short and one.state.state in ("measuring", "idle", "revoked"):
            continue
        yield probe_line(one, ledger.made_utc_ns)
        for account in short if incomplete else mine:
            yield from _spool(account)
    yield from _totals(ledger)


def probe_line(one: ProbeNow, now_utc_ns: int) -> str:
    """A probe's state and since when."""
    since = f"since {utc(one.state.since_utc_ns, MINUTE)} ({duration((now_utc_ns - one.state.since_utc_ns) / 1e9)})"
    return f"{one.probe.name:<14} {one.state.state:<20} {since}: {one.state.why}"[:WIDTH]


def _run(row: RunRow) -> Iterator[str]:
    promised, arrived, files, received = row.counts
    records = f"{arrived}/{promised}" if row.records else "-"
    of_files = f"{received}/{files}" if files else "-"
    head = f"{utc(row.ended_utc_ns or row.received_utc_ns, MINUTE):<17} {row.id:<18} {row.probe:<14} {row.kind:<6}"
    yield f"{head} {row.state:<9} {records:>15} {of_files:>9}"
    if row.status not in ("measured", "no manifest"):
        yield from _wrapped(row.status, "    ")
    seen: dict[tuple[str, str], list[str]] = {}
    for lack in row.missing:
        name = (
            lack.name if lack.what == "file" else f"{lack.count} {lack.name}" if lack.what == "records" else "manifest"
        )
        seen.setdefault((lack.why, lack.detail), []).append(name)
    for file, failure in row.analysis_failed.items():
        yield from _wrapped(f"not analysed: {file}: {failure}", "    ")
    for name, why_not in row.not_made.items():
        yield from _wrapped(f"no capture at the server: {name}: {why_not}", "    ")
    for (why, detail), names in seen.items():
        yield from _wrapped(f"{why.replace('_', ' ')}: {', '.join(names)}: {detail}", "    ")


def _spool(account: SpoolAccount) -> Iterator[str]:
    if account.spool is None:
        yield f"    {account.arrived} records of {account.boots} boots whose spool reported nothing"
        return
    yield f"    spool {account.spool}, {account.boots} boots, reported {utc(account.told_utc_ns, MINUTE)}: made {account.made} ="
    yield (
        f"      arrived {account.arrived} + rejected {account.rejected} + dropped {account.dropped} + waiting {account.waiting}"
        f" + unexplained {account.unexplained}" + (f" + expired {account.expired}" if account.expired else "")
    )
    if account.twice:
        yield f"      {account.twice} numbers are there at two times"
    if account.missing:
        shown = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in account.missing[:_RANGES])
        more = f" and {len(account.missing) - _RANGES} more ranges" if len(account.missing) > _RANGES else ""
        yield from _wrapped(f"not in the database: numbers {shown}{more}", "      ")


def _totals(ledger: Ledger) -> Iterator[str]:
    sums = totals(ledger.runs)
    states = ", ".join(f"{count} {state.replace('_', ' ')}" for state, count in sums["by_state"].items()) or "none"
    yield f"runs {sums['runs']}: {states}"
    yield (
        f"records of runs {sums['records_arrived']} of {sums['records_promised']},"
        f" files {sums['files_received']} of {sums['files_promised']}"
    )
    if sums["analysed"] or sums["analysis_failed"]:
        yield f"captures analysed {sums['analysed']}, not analysed {sums['analysis_failed']}"


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")
