"""Every golden dialogue, byte for byte."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from modem_desk import MODEM

from tandem_bench.modem.dialogue import answer
from tandem_bench.modem.families import FAMILIES
from tandem_bench.modem.radio import Radio

GOLDEN = sorted(Path(__file__).parent.glob("golden/*.txt"))


def escaped(block: str) -> str:
    return block.replace("\r", "\\r").replace("\n", "\\n")


@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: p.stem)
def test_dialogue_is_as_written(path):
    family = FAMILIES[path.stem.split("-")[0]]
    modem, radio = MODEM, Radio()
    spoken: list[str] = []
    for line in path.read_text().splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "radio":
            radio = Radio(**json.loads(rest))
        elif kind == "modem":
            modem = replace(modem, **json.loads(rest))
        if kind != ">":
            if kind != "<":
                spoken.append(line)
            continue
        spoken.append(line)
        reply = answer(family, modem, radio, rest)
        spoken += ["<"] if reply is None else [f"< {escaped(block)}" for block in reply.blocks]
        modem = modem if reply is None else reply.modem
    assert "\n".join(spoken) == path.read_text().rstrip("\n")
