"""What docs/silent-kit.md tells a person to type is understood by the programs, and its tables know every line and state there is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tandem.app.preflight.lines import TITLES
from tandem.cli.main import parser as probe_parser
from tandem.schema.metrics import PROBE_STATES
from tandem_server.cli.main import parser as server_parser
from tandem_server.ledger.last_words import LastWords, reasons

DOC = (Path(__file__).parents[3] / "docs" / "silent-kit.md").read_text()
SPANS = re.findall(r"`([^`\n]+)`", DOC)
LINES = [line for block in re.findall(r"```\n(.*?)```", DOC, re.DOTALL) for line in block.splitlines()]
COMMANDS = sorted(
    {
        text.partition("#")[0].strip().removeprefix("sudo -u tandem-server ").removeprefix("sudo ")
        for text in (*SPANS, *LINES)
        if re.match(r"(sudo (-u tandem-server )?)?tandem(-server)? [a-z]", text)
    }
)


def test_there_are_commands_for_both_programs() -> None:
    assert {command.split()[0] for command in COMMANDS} == {"tandem", "tandem-server"}
    assert len(COMMANDS) > 12, COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_understood(command: str) -> None:
    program, *words = shlex.split(command)
    parser = probe_parser() if program == "tandem" else server_parser()
    parser.parse_args([word.lower() if word == "NAME" else word for word in words])


def test_every_state_of_a_probe_that_is_wrong_has_its_next_step() -> None:
    first = DOC.partition("## 2.")[0]
    assert all(f"`{state}`" in first for state in PROBE_STATES if state not in ("measuring", "idle"))


def test_the_lines_named_are_lines() -> None:
    table = DOC.partition("| line that fails")[2].partition("\n\n")[0]
    named = {name for row in table.splitlines()[2:] for name in re.split(r",\s*", row.split("|")[1].strip())}
    assert named <= set(TITLES)
    assert len(named) > 6


@pytest.mark.parametrize(
    "said",
    [
        {"events": [{"at_utc_ns": 0, "kind": "collector_stop", "state": None}]},
        {"health": {"undervoltage": True}},
        {"sims": {"a": {"left_bytes": 0}}},
        {"modems": {"a": {"state": "lost"}}},
        {"radio": {"a": {"state": "searching"}}},
        {},
    ],
)
def test_every_reason_that_is_told_has_its_row(said: dict) -> None:
    (reason,) = reasons(LastWords(0, **said))
    rows = DOC.partition("## 3.")[2].partition("## 4.")[0].splitlines()
    phrases = [row.split("|")[1].strip() for row in rows if row.startswith("| ")][1:]
    assert any(all(word in reason for word in phrase.replace("…", "").split()) for phrase in phrases), reason
