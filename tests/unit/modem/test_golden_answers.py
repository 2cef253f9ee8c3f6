"""The tables in answers/: what an engineer reads in each family's answers, with and without the family named."""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tandem.modem.decoding import decode
from tandem.modem.registry import drivers
from tandem.schema.metrics import RADIO

ANSWERS = Path(__file__).parent / "answers"
TYPES = {"int": int, "float": float, "str": str, "bool": bool}
UNASKED = ('+CMTI: "SM",3', "+CREG: 1", "RING", "^BOOT:12345678,0,0,0,75", "^DSFLOWRPT:00000001,0,0,0,0,0,0")


def rows() -> dict[str, list[dict[str, Any]]]:
    """By family."""
    found: dict[str, list[dict[str, Any]]] = {}
    for file in sorted(ANSWERS.glob("*.toml")):
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        for answer in content["answer"]:
            found.setdefault(answer.get("family") or content["family"], []).append(answer)
    return found


ROWS = rows()


def told(answer: dict[str, Any], raw: str, driver: str | None = None) -> dict[str, Any]:
    found = decode(answer["command"], raw.encode(), driver, answer.get("model", "")).as_json()
    return {name: value for name, value in found.items() if value is not None}


def ways(answer: dict[str, Any]) -> list[str]:
    """In which the answer may arrive: its lines ended either way, between echo and final result, and among codes that came unasked."""
    raw = answer["raw"].strip("\n")
    if answer["command"].startswith("GET "):
        return [raw, raw.replace("\n", "\r\n")]
    unasked = [f"\r\n{code}\r\n{raw}\r\n{code}\r\n" for code in UNASKED]
    return [raw, raw.replace("\n", "\r\n"), f"{answer['command']}\r\r\n{raw}\r\n\r\nOK\r\n", *unasked]


@pytest.mark.parametrize("family", ROWS)
def test_what_is_read_in_an_answer_with_the_schemas_types(family: str) -> None:
    wrong = []
    for answer in ROWS[family]:
        expected = {**answer["expected"], "driver": family}
        for text, driver in itertools.product(ways(answer), (None, family)):
            if (found := told(answer, text, driver)) != expected:
                wrong.append((answer["behaviour"], text, driver, found, expected))
        for name, value in told(answer, answer["raw"], family).items():
            if name not in ("rat", "driver") and type(value) is not TYPES[RADIO.field(name).kind]:
                wrong.append((answer["behaviour"], name, value))
    assert wrong == []


def test_every_family_reads_the_standards_answers_alike() -> None:
    wrong = []
    for answer, (name, driver) in itertools.product(ROWS["generic"], drivers().items()):
        if driver.transport == "at" and told(answer, answer["raw"], name) != {**answer["expected"], "driver": name}:
            wrong.append((answer["behaviour"], name))
    assert wrong == []


def test_each_row_tells_where_its_meaning_is_from() -> None:
    for file in ("further.toml", "standard.toml"):
        content = tomllib.loads((ANSWERS / file).read_text(encoding="utf-8"))
        assert all(len(answer.get("source") or content.get("source", "")) > 10 for answer in content["answer"])
