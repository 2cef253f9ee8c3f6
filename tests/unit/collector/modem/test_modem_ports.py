"""The families' tables of USB ids: what is refused and how the refusal reads; the udev rules made of it."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.modem.usb import InterfaceRule, KnownDevice, PortsError, known_devices, read, rules

GOOD = """\
# a comment
[[device]]
vendor = "2c7c"
product = "0125"
models = ["EC25"]
switched_from = ["1f01"]
mode_switch = "usb_modeswitch -J"
interface = [
    { number = 2, role = "at" },
    { class = "ff", protocol = "02", role = "at-second" },
]

[[device]]
vendor = "2c7c"
product = "0306"
models = ["EG06"]
interface = []
"""
GOLDEN = Path(__file__).with_name("golden-udev.rules")


def wrong(tmp_path: Path, text: str | bytes) -> str:
    file = tmp_path / "maker.toml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(PortsError) as caught:
        read(file)
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith(f"{file}:")
    assert "; hint: " in said
    return said.removeprefix(f"{file}:")


def test_a_good_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "maker.toml").write_text(GOOD)
    first, second = known_devices(tmp_path)
    faces = (InterfaceRule("at", 2), InterfaceRule("at-second", None, "ff", None, "02"))
    assert first == KnownDevice("maker", "2c7c", "0125", ("EC25",), ("1f01",), faces, "usb_modeswitch -J")
    assert (second.product, second.interfaces) == ("0306", ())
    assert (second.has_second_port, first.has_second_port) == (False, True)


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ('vendor = "2c7c"\nproduct = "0125"', 'vendor = "2C7C"\nproduct = "0125"', 3, "'2C7C' is no USB id"),
        ('product = "0306"', 'product = "306"', 15, "'306' is no USB id"),
        ('product = "0306"', 'product = "0125"', 15, "2c7c:0125 is listed twice"),
        ('product = "0306"\n', "", 13, "None is no USB id"),
        ('models = ["EG06"]', "models = []", 16, "models is no list of names"),
        ('switched_from = ["1f01"]', 'switched_from = "1f01"', 6, "is no list"),
        ('switched_from = ["1f01"]', 'switched_from = ["1f0"]', 6, "'1f0' is no USB id"),
        (
            "interface = []",
            'interface = [{ number = 2, role = "modem" }]',
            17,
            "role 'modem' is none; hint: roles are at,",
        ),
        ("interface = []", 'interface = [{ number = "2", role = "at" }]', 17, "number '2' is none of 0 to 255"),
        ("interface = []", 'interface = [{ number = true, role = "at" }]', 17, "number True is none"),
        ("interface = []", 'interface = [{ role = "at" }]', 17, "nothing says which is at; hint: add number, or class"),
        ("interface = []", 'interface = [{ class = "FF", role = "at" }]', 17, "'FF' is no class"),
        ("interface = []", 'interface = [{ nummer = 2, role = "at" }]', 17, "unknown key 'nummer'"),
        ("interface = []", "interface = [2]", 17, "interface is no list of tables"),
        ("interface = []\n", "", 13, "interface is no list of tables"),
        ("interface = []", "interface = []\nport = 2", 18, "unknown key 'port'"),
        ("interface = []", "interface = []\nnote = 2", 18, "note: 2 is not text"),
        ("[[device]]\nvendor", "[device]\nvendor", 13, "no TOML"),
        ("# a comment", "speed = 3", 1, "unknown table or key 'speed'"),
        ("interface = []", "interface = [", 17, "no TOML"),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_its_mend(
    tmp_path: Path, old: str, new: str, line: int, what: str
) -> None:
    assert old in GOOD
    said = wrong(tmp_path, GOOD.replace(old, new, 1))
    assert what in said
    assert said.startswith(f"{line}:"), said


def test_other_files_are_refused_too(tmp_path: Path) -> None:
    assert "no list of devices" in wrong(tmp_path, "")
    assert "no list of devices" in wrong(tmp_path, "device = 3")
    assert "not UTF-8" in wrong(tmp_path, b"\xff")
    with pytest.raises(PortsError, match="No such file"):
        read(tmp_path / "none.toml")


@given(st.data())
def test_a_damaged_file_is_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    at, to = (data.draw(st.integers(0, len(GOOD))) for _ in range(2))
    between = data.draw(st.sampled_from(["", "]", '"', "= 1", "{", "[[device]]", "\n[x]\n", "é", "'''"]))
    text = GOOD[:at] + between + GOOD[to:]
    file = tmp_path_factory.mktemp("any") / "maker.toml"
    file.write_text(text, encoding="utf-8")
    with contextlib.suppress(PortsError):
        assert isinstance(read(file), tuple)


KNOWN = (
    KnownDevice("quectel", "2c7c", "0125", ("EC25", "EC21"), (),
                (InterfaceRule("nmea", 1), InterfaceRule("at", 2), InterfaceRule("at-second", 3))),
    KnownDevice("huawei", "12d1", "1506", ("E3372 in\nstick mode",), ("15cd",), (InterfaceRule("at", None, "ff", None, "02"),)),
    KnownDevice("hilink", "12d1", "14dc", ("E3372h",), (), (InterfaceRule("network", 0),)),
    KnownDevice("twin", "2c7c", "0125", ("EC25",), (), (InterfaceRule("at-second", 10, "ff", "00", "00"),)),
)  # fmt: skip


def test_the_rules_are_the_golden_ones_whatever_the_order() -> None:
    assert rules(KNOWN) == GOLDEN.read_text()
    assert rules((KNOWN[2], KNOWN[0], KNOWN[1], KNOWN[3])) == GOLDEN.read_text()
    assert "SYMLINK" not in rules(())
