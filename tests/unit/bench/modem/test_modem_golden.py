"""Every golden dialogue, byte for byte; and every bin of the codings."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from support.modem_on_fake_clock import MODEM
from tandem_bench.modem import radio as codes
from tandem_bench.modem.dialogue import answer
from tandem_bench.modem.families import FAMILIES, huawei
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


# name, code, lower edge of bin v, highest code, unknown: TS 27.007 8.5 and 8.69, Huawei's ^HCSQ
TABLES = [
    (codes.csq, lambda v: -113 + 2 * v, 31, 99),
    (codes.rsrp, lambda v: -141 + v, 97, 255),
    (codes.rsrq, lambda v: -20 + v / 2, 34, 255),
    (codes.rxlev, lambda v: -111 + v, 63, 99),
    (codes.rscp, lambda v: -121 + v, 96, 255),
    (codes.ecno, lambda v: -24.5 + v / 2, 49, 255),
    (codes.ss_rsrp, lambda v: v - 157, 126, 255),
    (codes.ss_rsrq, lambda v: (v - 87) / 2, 126, 255),
    (codes.ss_sinr, lambda v: (v - 47) / 2, 127, 255),
    (huawei.level_code, lambda v: -121 + v, 96, 255),
    (huawei.sinr_code, lambda v: -20.2 + v / 5, 251, 255),
    (huawei.ecio_code, lambda v: -32.5 + v / 2, 65, 255),
]
each_table = pytest.mark.parametrize(
    ("code", "lower", "top", "unknown"), TABLES, ids=lambda t: getattr(t, "__name__", "")
)


@each_table
def test_edges_of_all_bins(code, lower, top, unknown):
    assert [code(lower(v)) for v in range(top + 1)] == list(range(top + 1))
    assert code(lower(0) - 50) == 0
    assert code(lower(top) + 50) == top
    assert code(None) == unknown
