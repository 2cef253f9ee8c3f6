"""Parsers of what kernel and firmware tell: the documented forms are taken, any other text is refused, none passes for a number."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.app.health import boots, firmware, memory, software, storage, temperatures
from tandem.app.health.throttled import NAMES, of_bits, of_text


@pytest.mark.parametrize(
    ("text", "now", "since"),
    [
        ("throttled=0x0", set(), set()),
        ("0", set(), set()),
        ("throttled=0x50005", {"undervoltage", "throttled"}, {"undervoltage", "throttled"}),
        ("50000", set(), {"undervoltage", "throttled"}),
        ("e0008", {"soft_temperature_limit"}, {"frequency_capped", "throttled", "soft_temperature_limit"}),
    ],
)
def test_the_firmwares_bits_have_their_documented_meaning(text: str, now: set[str], since: set[str]) -> None:
    assert (of_text(text).now, of_text(text).since) == (now, since)


@given(st.integers(0, 2**32 - 1))
def test_every_value_of_the_bits_is_read_the_same_in_both_forms(bits: int) -> None:
    assert of_text(f"throttled=0x{bits:x}") == of_text(f"{bits:x}") == of_bits(bits)
    assert of_bits(bits).now == {NAMES[n] for n in range(4) if bits & 1 << n}


def test_what_is_no_answer_of_the_firmware_is_refused() -> None:
    for text in ("", "throttled=", "0x", "error=1 error_msg=Command not registered", "1FFFFFFFF", "-1", "٣"):
        with pytest.raises(ValueError, match="no answer"):
            of_text(text)


def test_a_message_to_the_firmware_is_as_documented() -> None:
    """Buffer of the mailbox property interface: 28 bytes for one tag with four of value."""
    assert struct.unpack("=7I", firmware.message(firmware.REVISION, b"", 4)) == (28, 0, 1, 4, 0, 0, 0)
    sent = firmware.message(firmware.COMMAND, b"\0\0\0\0get_throttled", firmware.ROOM)
    assert struct.unpack_from("=6I", sent) == (24 + 1024, 0, 0x30080, 1024, 0, 0)
    assert sent[24:38] == b"get_throttled\0"
    assert sent[-4:] == b"\0\0\0\0"


def answered(value: bytes, room: int = 1024, status: int = 0x8000_0000, tag: int = firmware.COMMAND) -> bytes:
    return struct.pack("=5I", 24 + room, status, tag, room, 0x8000_0000) + value.ljust(room, b"\0") + bytes(4)


def test_an_answer_of_the_firmware_is_read() -> None:
    value = firmware.value_of(answered(b"\0\0\0\0throttled=0x50005\0rest"), firmware.COMMAND, 1024)
    assert firmware.text_in(value) == "throttled=0x50005"
    with pytest.raises(ValueError, match="refuses"):
        firmware.value_of(answered(b"", status=0x8000_0001), firmware.COMMAND, 1024)
    with pytest.raises(ValueError, match="error 1"):
        firmware.text_in(b"\1\0\0\0error")


@given(st.binary(max_size=1100), st.binary(max_size=1024))
def test_any_bytes_are_an_answer_and_any_value_a_text_or_are_refused(answer: bytes, value: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert firmware.text_in(firmware.value_of(answer, firmware.COMMAND, 1024)).isascii()
    with contextlib.suppress(ValueError):
        assert "\0" not in firmware.text_in(value.ljust(1024, b"\0"))


def test_units_of_the_kernel_and_what_it_does_not_know() -> None:
    told = {"47712": 47.712, "-5000": -5.0, "-273150": None, "2147483647": None}
    assert {text: temperatures.degrees(text) for text in told} == told, "millidegrees, impossible ones absent"
    with pytest.raises(ValueError, match="no temperature"):
        temperatures.degrees("47.7 C")
    assert (storage.codes("0x02 0x0a", 2), storage.codes(None, 2)) == ((2, 10), None)
    used = {0: None, 1: 10, 10: 100, 11: 110, 12: None, 255: None}
    assert {code: storage.used_percent(code) for code in used} == used, "tenths, undefined codes tell none"
    for wrong in ("0x02", "0x02 0x0a 0x01", "2 10", "", "0x1ff 0x01"):
        with pytest.raises(ValueError, match="is not 2 codes"):
            storage.codes(wrong, 2)
    assert storage.moved_bytes("1 0 10 0 2 0 20 0 0 0 0") == (5120, 10240), "sectors of 512 bytes"
    with pytest.raises(ValueError, match="no block device's stat"):
        storage.moved_bytes("1 2 3")
    name = "Debian GNU/Linux 12 (bookworm)"
    names = {f'NAME="x"\nPRETTY_NAME="{name}"\n': name, "PRETTY_NAME=Alpine\n": "Alpine", "NAME=x\n": None}
    assert {text: software.pretty_name(text) for text in names} == names


PARSERS = [
    of_text, temperatures.degrees, storage.moved_bytes, lambda text: storage.codes(text, 1), memory.available_bytes,
    memory.load_1min, memory.uptime_s, boots.parse,
]  # fmt: skip


@pytest.mark.parametrize("parser", PARSERS)
@given(text=st.one_of(st.text(max_size=80), st.from_regex(r"\A[0-9a-fx .:=\n-]{0,60}\Z")))
def test_any_text_is_read_or_refused_with_a_value_error(parser, text: str) -> None:
    with contextlib.suppress(ValueError, RecursionError):
        parser(text)


@given(st.text(max_size=200))
def test_any_text_of_os_release_gives_a_printable_name_or_none(text: str) -> None:
    name = software.pretty_name(text)
    assert name is None or (name.isprintable() and name)
