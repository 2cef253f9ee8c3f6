"""What every modem family must keep. Families are found by folder, so a new one is tested by being there."""

import itertools
import json
import re
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tandem.modem
from tandem.at.dialogue import Dialogue, Response
from tandem.at.grammar import Command, Final, LineSplitter, prefix
from tandem.modem.base import RATS, Identity, Reading, Role
from tandem.modem.families import AUTO, FALLBACK, choose, drivers
from tandem.modem.poll import Poll, in_range
from tandem.modem.usb import known_devices, rules
from tandem.schema.metrics import RADIO_STATES

MODEM = Path(tandem.modem.__file__).parent / "families"
PAGE = Path(__file__).parents[2] / "docs/contributing/modem-drivers.md"
FAMILIES = sorted(drivers())


@dataclass(frozen=True)
class Transcript:
    path: Path
    content: dict[str, Any]

    @property
    def identity(self) -> Identity:
        return Identity(**self.content["identity"])


TRANSCRIPTS = {
    name: [Transcript(p, json.loads(p.read_text())) for p in sorted((MODEM / "transcripts" / name).glob("*.json"))]
    for name in FAMILIES
}
every_family = pytest.mark.parametrize("family", FAMILIES)


def answer(command: str, received: str, chunk: int) -> Response:
    """The response to ``command`` when its bytes arrive ``chunk`` at a time."""
    dialogue, splitter, stream = Dialogue(Command(command)), LineSplitter(), received.encode("latin-1")
    for start in range(0, len(stream), chunk):
        for line in splitter.feed(stream[start : start + chunk]):
            response = dialogue.feed(line)
            if response is not None:
                return response
    raise AssertionError(f"{command}: the dialogue has no final result")


def answers(content: dict[str, Any], transport: str, chunk: int = 10_000) -> list[Response]:
    """The responses of a transcript: through the dialogue of the serial port, or as the lines of a page."""
    if transport == "http":
        pages = [(turn["send"], tuple(turn["receive"].splitlines())) for turn in content["dialogue"]]
        return [Response(command, lines, Final("ok", "ok")) for command, lines in pages]
    return [answer(turn["send"], turn["receive"], chunk) for turn in content["dialogue"]]


def as_expected(reading: Reading) -> dict[str, Any]:
    return {k: v for k, v in {**reading.as_fields(), "rat": reading.rat}.items() if v is not None}


def faults_of_text(family: str, transcript: Transcript) -> list[object]:
    """Where it is from, what it asks, and whose it was."""
    content = transcript.content
    kept = {
        "a behaviour and a source": content["behaviour"] and content["source"],
        "a date, or by hand": content["recorded"] is not None or "by hand" in content["source"],
        "the driver's commands": [turn["send"] for turn in content["dialogue"]]
        == list(drivers()[family].poll_commands(transcript.identity)),
        # An IMEI, IMSI or ICCID has 14 to 20 digits.
        "no identity": not re.search(r"[0-9]{14,20}", transcript.path.read_text()),
    }
    return [(transcript.path.name, rule) for rule, holds in kept.items() if not holds]


def faults_of_record(family: str, transcript: Transcript) -> list[object]:
    """However its bytes arrive, it gives its record."""
    driver, wrong = drivers()[family], list[object]()
    for chunk in (1, 7, 10_000):
        reading = driver.decode(answers(transcript.content, driver.transport, chunk), transcript.identity)
        state = Poll("a", None, driver.name, None, 0, 0, 1, reading, None).record().fields["state"]
        if as_expected(reading) != transcript.content["expected"] or state not in RADIO_STATES:
            wrong.append((transcript.path.name, chunk, reading, state))
        wrong += [(transcript.path.name, "out of range", reading)] * (in_range(reading) != (reading, ()))
    return wrong


@every_family
def test_a_transcript_gives_its_record_says_where_it_is_from_and_holds_nobodys_number(family):
    for faults in (faults_of_text, faults_of_record):
        assert [fault for transcript in TRANSCRIPTS[family] for fault in faults(family, transcript)] == []


OF_2G_AND_3G = frozenset({"lac", "ci"})
OF_3G = frozenset({"rscp_dbm", "rscp_code", "ecno_db", "ecno_code"})
OF_LTE_AND_NR = frozenset(
    {"tac", "eci", "pci", "earfcn", "rsrp_dbm", "rsrp_code", "rsrq_db", "rsrq_code", "sinr_db", "sinr_code"}
)
OF_NSA = frozenset(field.name for field in fields(Reading) if field.name.startswith("nr_"))
NEVER = {
    "GSM": OF_LTE_AND_NR | OF_3G | OF_NSA,
    "WCDMA": OF_LTE_AND_NR | OF_NSA,
    "NR-NSA": OF_2G_AND_3G | OF_3G,
    **dict.fromkeys(("LTE", "CAT-M", "NB-IOT", "NR-SA"), OF_2G_AND_3G | OF_3G | OF_NSA),
}
"""Technology → what its records never hold: see ``Reading``."""


def strangers(reading: Reading) -> set[str]:
    """Quantities that the reading's technology does not have."""
    return {name for name in NEVER.get(reading.rat or "", ()) if getattr(reading, name) is not None}


def faults_of_answers(family: str, transcript: Transcript) -> list[object]:
    """Each answer stands alone, also of a modem that has not told and without its final OK; no quantity is of another technology."""
    driver, wrong = drivers()[family], list[object]()
    responses = answers(transcript.content, driver.transport)
    wrong += [(transcript.path.name, name) for name in strangers(driver.decode(responses, transcript.identity))]
    for response in responses:
        refused = Response(response.command, response.lines, Final("error", "error"))
        for identity in (Identity(), transcript.identity):
            reading = driver.decode([response], identity)
            if (
                in_range(reading) != (reading, ())
                or strangers(reading)
                or driver.decode([refused], identity) != reading
            ):
                wrong.append((transcript.path.name, response, identity, reading))
    return wrong


@every_family
def test_each_answer_stands_alone_and_each_question_is_worth_asking(family):
    assert [fault for transcript in TRANSCRIPTS[family] for fault in faults_of_answers(family, transcript)] == []
    driver, told = drivers()[family], Counter[str]()
    for transcript in TRANSCRIPTS[family]:
        for response in answers(transcript.content, driver.transport):
            told[response.command] += not driver.decode([response], transcript.identity).empty
    assert [question for question, count in told.items() if not count] == [], "answers that alone tell nothing"


UNKNOWN_MARKS = ("", "-", "-32768")


# The bodies of web pages have numbers in their tags.
@pytest.mark.parametrize("family", [name for name in FAMILIES if drivers()[name].transport == "at"])
def test_what_is_not_known_is_none(family):
    """Every number of the answers (identities too, with hexadecimal digits) made unknown: no quantity is left."""
    driver, wrong = drivers()[family], []
    for transcript, mark in itertools.product(TRANSCRIPTS[family], UNKNOWN_MARKS):
        responses = []
        for response in answers(transcript.content, "at"):
            lines = []
            for line in response.lines:
                name = prefix(line)
                head, body = (f"{name}: ", line.partition(":")[2]) if name is not None and ":" in line else ("", line)
                lines.append(head + re.sub(r"(?<![A-Za-z_])[-+]?(?:0[xX])?[0-9A-Fa-f]*[0-9][0-9A-Fa-f.]*", mark, body))
            responses.append(Response(response.command, tuple(lines), response.final))
        known = set(as_expected(driver.decode(responses, transcript.identity))) - {"state", "rat", "band", "nr_band"}
        wrong += [(transcript.path.name, mark, name) for name in known]
    assert wrong == []


@every_family
def test_a_modem_is_given_to_its_own_family_only(family):
    others = [name for name in FAMILIES if name not in (FALLBACK, family)]
    for identity in {transcript.identity for transcript in TRANSCRIPTS[family]}:
        assert choose(AUTO, identity).name == family
        assert [name for name in others if drivers()[name].matches(identity)] == []


@every_family
def test_a_folder_is_whole(family):
    assert f"\n| `{family}` | " in PAGE.read_text(encoding="utf-8")
    expected = [t.content["expected"] for t in TRANSCRIPTS[family]]
    assert len(expected) >= 5, "too few transcripts"
    assert [e for e in expected if "rat" in e], "none with service"
    assert [e for e in expected if not set(e) - {"state", "rat"}], "none without service"


def test_a_usb_device_is_of_one_family_and_has_no_interface_twice_and_one_port_for_the_collector():
    text = rules(known_devices())
    ids = Counter((device.vendor, device.product) for device in known_devices())
    assert [one for one, count in ids.items() if count > 1] == []
    for device in known_devices():
        wrong = [
            one
            for one in (device.vendor, device.product, *device.switched_from)
            if not re.fullmatch("[0-9a-f]{4}", one)
        ]
        wrong += [role for role in device.roles.values() if role not in get_args(Role)]
        wrong += [key for key in device.roles if isinstance(key, str) and not re.fullmatch("[0-9a-f]{2}", key)]
        assert (wrong, all(device.models)) == ([], True), device
        assert list(device.roles.values()).count("at-second") <= 1, device
        assert f'"{device.product}"' in text, device


IDENTITIES = {name: [Identity(), *{t.identity for t in TRANSCRIPTS[name]}] for name in FAMILIES}


@every_family
def test_commands_fit_one_line_are_safe_to_poll_and_silence_tells_nothing(family):
    driver = drivers()[family]
    for identity in IDENTITIES[family]:
        assert driver.poll_commands(identity)
        for command in (
            *driver.setup_commands(identity),
            *driver.poll_commands(identity),
            *driver.gnss_commands(identity),
        ):
            assert command.startswith({"at": "AT", "http": "GET /"}[driver.transport])
            assert command.isascii()
            assert command.isprintable()
            assert "=?" not in command.replace('="', ""), "test commands may take minutes"
    silence = [Response(command, (), Final("ok", "ok")) for command in driver.poll_commands(Identity())]
    assert [answers for answers in (silence, []) if not driver.decode(answers, Identity()).empty] == []


def damaged(lines: list[str]) -> st.SearchStrategy[list[str]]:
    """Lines of the transcripts with pieces cut out, doubled and replaced."""
    piece = st.tuples(
        st.sampled_from(lines), st.integers(0, 80), st.integers(0, 80), st.text('0-9,"-: AFx.', max_size=6)
    )
    return st.lists(piece.map(lambda p: p[0][: p[1]] + p[3] + p[0][p[2] :]), max_size=6)


@every_family
def test_garbage_gives_none_never_an_exception_and_never_an_impossible_record(family):
    driver = drivers()[family]
    turns = [turn for transcript in TRANSCRIPTS[family] for turn in transcript.content["dialogue"]]
    lines = [line for turn in turns for line in turn["receive"].split("\r\n") if line]

    @settings(max_examples=settings.default.max_examples // 3)  # a family each
    @given(st.one_of(damaged(lines), st.lists(st.text(max_size=60), max_size=4)))
    def check(found: list[str]) -> None:
        for identity in IDENTITIES[family]:
            command = driver.poll_commands(identity)[0]
            reading = driver.decode([Response(command, tuple(found), Final("ok", "ok"))], identity)
            assert reading.rat is None or reading.rat in RATS
            assert reading.state in RADIO_STATES
            assert strangers(reading) == set()
            for field in fields(reading):
                assert getattr(reading, field.name) not in (float("inf"), float("-inf"))
            kept, _dropped = in_range(reading)
            Poll("a", "A", driver.name, None, 0, 0, 1, kept, None).record()

    check()
