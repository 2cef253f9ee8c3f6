"""What the guides tell a person to type is understood by the programs, and playbooks, files and blocks that they name are there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tandem.cli.main import parser as probe_parser
from tandem_bench.cli.main import parser as bench_parser
from tandem_hardware.__main__ import parser as hardware_parser
from tandem_image.cli import parser as image_parser
from tandem_server.cli.main import parser as server_parser

ROOT = Path(__file__).parents[3]
GUIDES = sorted((ROOT / "hardware" / "guides").glob("*.md"))
PARSERS = {
    "tandem": probe_parser,
    "tandem-server": server_parser,
    "tandem-bench": bench_parser,
    "tandem-hardware": hardware_parser,
}
BEFORE = re.compile(r"^(ssh SERVER )?(sudo )?(-u tandem-server )?(/opt/tandem/|cd /opt/tandem && sudo )?")
OURS = re.compile(r"(tandem|tandem-server|tandem-bench|tandem-hardware|\./kit|kit) (?=[a-z-])")


def _commands(text: str) -> list[str]:
    blocks = re.findall(r"^\s*```\n(.*?)^\s*```$", text, re.DOTALL | re.MULTILINE)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^\s*```\n.*?^\s*```$", "", text, flags=re.DOTALL | re.MULTILINE))
    bare = [BEFORE.sub("", line.partition(" #")[0].replace("…", "").strip()) for line in (*lines, *spans)]
    return sorted({line.partition(" >")[0] for line in bare if OURS.match(line)})


CASES = [(path.name, command) for path in GUIDES for command in _commands(path.read_text(encoding="utf-8"))]


def test_commands_are_found_in_the_guides() -> None:
    named = {(guide, command.split()[0].rpartition("/")[2]) for guide, command in CASES}
    for guide, programs in {
        "assembly.md": {"tandem", "tandem-server", "kit"},
        "lab-book.md": {"tandem", "tandem-server", "tandem-hardware", "kit"},
        "bench-unit.md": {"tandem", "tandem-bench", "kit"},
        "README.md": {"tandem-hardware"},
    }.items():
        assert programs <= {program for where, program in named if where == guide}, (guide, named)
    assert len(CASES) > 25, CASES


@pytest.mark.parametrize("command", sorted({command for _, command in CASES}))
def test_a_command_is_understood(command: str) -> None:
    program, *words = shlex.split(command)
    if program.endswith("kit"):
        program, words = _behind_kit(words)
    if program in PARSERS and words:
        _understood(program, words)


def _behind_kit(words: list[str]) -> tuple[str, list[str]]:
    """What the entry script starts; it is asked here what it knows."""
    script = (ROOT / "kit").read_text(encoding="utf-8")
    command, *rest = words
    assert re.search(rf"^    {re.escape(command)}\)", script, re.MULTILINE), command
    if command == "run":
        return rest[0], rest[1:]
    if command == "image":
        image_parser().parse_args(rest)
    elif command == "provision" and rest:
        assert (ROOT / "ansible" / "playbooks" / f"{rest[0].removesuffix('.yml')}.yml").is_file(), rest[0]
    return "kit", []


def _understood(program: str, words: list[str]) -> None:
    if len(words) <= 2 and not any(word.startswith("-") for word in words) and _mentioned(program, words):
        return
    PARSERS[program]().parse_args([word.lower() if word == "NAME" else word for word in words])


def _mentioned(program: str, words: list[str]) -> bool:
    """A command named in a sentence without what it needs: then its help has to be there."""
    with pytest.raises(SystemExit) as left:
        PARSERS[program]().parse_args([*words, "--help"])
    return left.value.code == 0


def test_the_units_file_starts_what_there_is() -> None:
    unit = (ROOT / "firmware" / "bench" / "system" / "tandem-bench-gadget.service").read_text(encoding="utf-8")
    values = dict(
        pair.split("=") for line in re.findall(r"^Environment=(.*)$", unit, re.MULTILINE) for pair in line.split()
    )
    lines = re.findall(r"^ExecStart(?:Pre)?=/opt/tandem/\.venv/bin/tandem-bench (.*)$", unit, re.MULTILINE)
    assert len(lines) == 2
    for line in lines:
        bench_parser().parse_args(shlex.split(re.sub(r"\$\{(\w+)\}", lambda found: values[found[1]], line)))
