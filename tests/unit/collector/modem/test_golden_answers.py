"""The tables in answers/: what an engineer reads in each family's answers, with and without the family named."""

import itertools
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from support.shared_data import LACKING, shared_data
from tandem.modem.decoding import UndecodableError, decode
from tandem.modem.families import drivers
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
def test_what_is_read_in_an_answer_with_the_schemas_types(family):
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


def test_every_family_reads_the_standards_answers_alike():
    wrong = []
    for answer, (name, driver) in itertools.product(ROWS["generic"], drivers().items()):
        if driver.transport == "at" and told(answer, answer["raw"], name) != {**answer["expected"], "driver": name}:
            wrong.append((answer["behaviour"], name))
    assert wrong == []


# --- answers of real modems as people published them, which are not part of the repository: none is read wrongly

RECORDED = shared_data("at/recorded.jsonl")
TOLERANCES = {"rsrp_dbm": 1, "rssi_dbm": 1, "rscp_dbm": 1, "rsrq_db": 0.5, "ecno_db": 0.5, "sinr_db": 0.5}


def agrees(name: str, expected: Any, found: Any) -> bool:
    """A list: any of these."""
    if isinstance(expected, list):
        return any(agrees(name, one, found) for one in expected)
    tolerance = TOLERANCES.get(name.removeprefix("nr_"))
    if tolerance is None or expected is None:
        return bool(found == expected)
    return bool(abs(found - expected) <= tolerance + 1e-9)


@pytest.mark.skipif(RECORDED is None, reason=LACKING)
def test_no_recorded_answer_is_read_wrongly_and_those_not_understood_are_listed(capsys):
    wrong, missed, rows = [], [], [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    for number, row in enumerate(rows, 1):
        expected = {name: value for name, value in row["expected"].items() if not name.startswith("_")}
        try:
            found = decode(row["command"], row["raw"].encode()).as_json()
        except UndecodableError as error:
            found = {"refused": str(error)}
        wrong += [
            (number, row["command"], name, value, found[name])
            for name, value in expected.items()
            if found.get(name) is not None and not agrees(name, value, found[name])
        ]
        if any(
            found.get(name) is None
            for name, value in expected.items()
            if value is not None and name not in row["may_be_withheld"]
        ):
            missed.append(f"{number}: {row['command']}: {row['firmware']}")
    with capsys.disabled():
        print(f"\n{len(missed)} of {len(rows)} recorded answers are not read whole:", *missed, sep="\n  ")
    assert wrong == []
    assert len(missed) <= 0.05 * len(rows)
