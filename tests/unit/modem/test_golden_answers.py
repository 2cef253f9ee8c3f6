"""The tables in answers/: what an engineer reads in each family's answers, with and without the family named."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tandem.modem.decoding import decode
from tandem.modem.registry import drivers
from tandem.schema.metrics import RADIO

ANSWERS = Path(__file__).parent / "answers"
TYPES = {"int": int, "float": float, "str": str, "bool": bool}


def _rows() -> Iterator[Any]:
    for file in sorted(ANSWERS.glob("*.toml")):
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        for answer in content["answer"]:
            family = answer.get("family") or content["family"]
            yield pytest.param(family, answer, id=f"{family}: {answer['behaviour']}")


ROWS = list(_rows())


def told(answer: dict[str, Any], raw: str, driver: str | None = None) -> dict[str, Any]:
    found = decode(answer["command"], raw.encode(), driver, answer.get("model", "")).as_json()
    return {name: value for name, value in found.items() if value is not None}


@pytest.mark.parametrize(("family", "answer"), ROWS)
def test_what_is_read_in_an_answer(family: str, answer: dict[str, Any]) -> None:
    expected = {**answer["expected"], "driver": family}
    raw = answer["raw"].strip("\n")
    web = answer["command"].startswith("GET ")
    wrapped = raw if web else f"{answer['command']}\r\r\n{raw}\r\n\r\nOK\r\n"
    for text in (raw, raw.replace("\n", "\r\n"), wrapped):
        assert told(answer, text) == expected
        assert told(answer, text, family) == expected


@pytest.mark.parametrize(("family", "answer"), [row for row in ROWS if not row.values[1]["command"].startswith("GET ")])
def test_codes_that_came_unasked_change_nothing(family: str, answer: dict[str, Any]) -> None:
    raw = answer["raw"].strip("\n")
    for unasked in ('+CMTI: "SM",3', "+CREG: 1", "RING", "^BOOT:12345678,0,0,0,75", "^DSFLOWRPT:00000001,0,0,0,0,0,0"):
        assert told(answer, f"\r\n{unasked}\r\n{raw}\r\n{unasked}\r\n") == {**answer["expected"], "driver": family}


@pytest.mark.parametrize(("family", "answer"), ROWS)
def test_numbers_have_the_type_of_the_schema(family: str, answer: dict[str, Any]) -> None:
    for name, value in told(answer, answer["raw"], family).items():
        if name not in ("rat", "driver"):
            assert type(value) is TYPES[RADIO.field(name).kind], name


@pytest.mark.parametrize(
    "answer", [pytest.param(row.values[1], id=row.id) for row in ROWS if row.values[0] == "generic"]
)
def test_every_family_reads_the_standards_answers_alike(answer: dict[str, Any]) -> None:
    for name, driver in drivers().items():
        if driver.transport == "at":
            assert told(answer, answer["raw"], name) == {**answer["expected"], "driver": name}


@pytest.mark.parametrize("file", ["further.toml", "standard.toml"])
def test_each_row_tells_where_its_meaning_is_from(file: str) -> None:
    content = tomllib.loads((ANSWERS / file).read_text(encoding="utf-8"))
    assert all(len(answer.get("source") or content.get("source", "")) > 10 for answer in content["answer"])


def test_every_family_has_rows() -> None:
    assert {row.values[0] for row in ROWS} >= set(drivers()) - {"dlink"}, "dlink asks nothing but the standard's"
    assert len(ROWS) >= 120
