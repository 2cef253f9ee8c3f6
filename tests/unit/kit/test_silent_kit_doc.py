"""The tables of docs/silent-kit.md know every line and state there is."""

import re
from pathlib import Path

from tandem.app.preflight.lines import TITLES
from tandem_server.ledger.last_words import LastWords, reasons
from tandem_server.schema.measurements import PROBE_STATES

DOC = (Path(__file__).parents[3] / "docs" / "silent-kit.md").read_text()


def test_every_state_of_a_probe_that_is_wrong_has_its_next_step() -> None:
    first = DOC.partition("## 2.")[0]
    assert all(f"`{state}`" in first for state in PROBE_STATES if state not in ("measuring", "idle"))


def test_the_lines_named_are_lines() -> None:
    table = DOC.partition("| line that fails")[2].partition("\n\n")[0]
    named = {name for row in table.splitlines()[2:] for name in re.split(r",\s*", row.split("|")[1].strip())}
    assert named <= set(TITLES)
    assert len(named) > 6


def test_every_reason_that_is_told_has_its_row() -> None:
    rows = DOC.partition("## 3.")[2].partition("## 4.")[0].splitlines()
    phrases = [row.split("|")[1].strip() for row in rows if row.startswith("| ")][1:]
    for said in (
        {"events": [{"at_utc_ns": 0, "kind": "collector_stop", "state": None}]},
        {"health": {"undervoltage": True}},
        {"sims": {"a": {"left_bytes": 0}}},
        {"modems": {"a": {"state": "lost"}}},
        {"radio": {"a": {"state": "searching"}}},
        {},
    ):
        (reason,) = reasons(LastWords(0, **said))
        assert any(all(word in reason for word in one.replace("…", "").split()) for one in phrases), reason
