"""The e-paper, against an emulated controller: what it shows is what was drawn; its failures are its own."""

import re
import shutil
import struct
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.waiting import until
from tandem.indicator import e_paper as bus
from tandem.indicator import e_paper as page
from tandem.indicator import e_paper as panel
from tandem.indicator.e_paper import (
    ADVANCE,
    COLUMNS,
    ROWS,
    Page,
    Picture,
    Showing,
    drawn,
    glyph,
    glyphs,
    spelt,
    wrapped,
)
from tandem.schema.status_led import CALL, CHARGE, MEASURING, NO_NETWORK, STATES, WELL

GLASS = (122, 250)
"""Sources and gates of the 2.13 inch panel."""


# Stands for the panel, which cannot be here: decodes the SSD1680's commands as its data sheet has them, and gives back the picture.
# Written from the data sheet apart from the driver: memory of 176 sources by 296 gates, address counters with ranges and direction, a
# reset that is asked for, a controller that is deaf while it is busy or asleep.
class Ssd1680:
    """``looks``: for so many looks at BUSY each reset and refresh takes; None: it never ends."""

    def __init__(self, looks: int | None = 3) -> None:
        self.memory = [[0] * (176 // 8) for _ in range(296)]
        self.glass: list[list[bool]] | None = None
        """By gate and source, whether it is black; None: whatever it showed before."""
        self.refreshes = 0
        self.asleep = True
        self._looks, self._busy = looks, 0
        self._low = False
        self._registers: dict[int, bytes] = {}

    def reset(self, *, low: bool) -> None:
        if self._low and not low:
            self.asleep, self._registers = False, {}
            self._work()
        self._low = low

    def busy(self) -> bool:
        if self._looks is None and self._busy:
            return True
        self._busy = max(0, self._busy - 1)
        return self._busy > 0

    def _work(self) -> None:
        self._busy = 1 if self._looks is None else self._looks

    def command(self, code: int, data: bytes = b"") -> None:
        assert not self.asleep, f"{code:#x} to a controller that sleeps"
        assert self._busy == 0, f"{code:#x} to a controller that is busy"
        assert not self._low, "it is held in reset"
        lengths = {0x12: 0, 0x20: 0, 0x01: 3, 0x45: 4, **dict.fromkeys((0x44, 0x4F, 0x21), 2)}
        lengths |= dict.fromkeys((0x11, 0x4E, 0x3C, 0x18, 0x22, 0x10), 1)
        assert code == 0x24 or lengths[code] == len(data), f"{code:#x} with {len(data)} bytes"
        if code == 0x12:
            self._registers = {0x44: b"\0\x15", 0x45: struct.pack("<HH", 0, 295), 0x4E: b"\0", 0x4F: bytes(2)}
            self._work()
        elif code == 0x24:
            self._write(data)
        elif code == 0x20:
            self._refresh()
        elif code == 0x10:
            self.asleep = data[0] != 0
        else:
            self._registers[code] = data

    def _write(self, data: bytes) -> None:
        assert self._registers[0x11] == b"\3", "only X and Y up, X first, is known here"
        (x_first, x_last), (y_first, y_last) = self._registers[0x44], struct.unpack("<HH", self._registers[0x45])
        (x,), (y,) = self._registers[0x4E], struct.unpack("<H", self._registers[0x4F])
        for byte in data:
            self.memory[y][x] = byte
            x += 1
            if x > x_last:
                x, y = x_first, y + 1
            if y > y_last:
                y = y_first
        self._registers |= {0x4E: bytes([x]), 0x4F: struct.pack("<H", y)}

    def _refresh(self) -> None:
        assert self._registers[0x22] == b"\xf7", "only a whole refresh is known here"
        assert self._registers[0x01] == struct.pack("<HB", GLASS[1] - 1, 0), "gates"
        assert self._registers[0x21][1] & 0x80, "this glass is wired to sources 8 and up"
        self.glass = [
            [not self.memory[gate][source // 8] >> (7 - source % 8) & 1 for source in range(GLASS[0])]
            for gate in range(GLASS[1])
        ]
        self.refreshes += 1
        self._work()

    def seen(self) -> list[list[bool]]:
        """As one sees it with the panel on its long side, its connector on the left: rows of dots, True for black."""
        sources, gates = GLASS
        return [[self.glass[gate][sources - 1 - row] for gate in range(gates)] for row in range(sources)]


# --- the e-paper, against an emulated controller: what it shows is what was drawn; its failures are its own


PAGE = Page("kit-07", CHARGE, "Ana, 555 0100", "Sent: within the hour", "as of 22 Nov 14:00")
HOUR_NS = 3600 * 10**9
NOON_NS = 1_763_812_800 * 10**9
"""22 November 2025, 12:00 UTC."""


def read(picture: Picture, x: int, y: int, *, wide: int = 1, tall: int = 1) -> str:
    """The letters of a line, read back from the dots."""
    known = {dots: letter for letter, dots in glyphs().items()}
    found = ""
    while x + 5 * wide <= COLUMNS:
        cell = tuple(tuple(picture.black[y + r * tall][x + c * wide] for c in range(5)) for r in range(8))
        found += known.get(cell, "□")
        x += ADVANCE * wide
    return found.rstrip()


def test_the_panel_shows_what_was_drawn():
    controller = Ssd1680()
    for state in (CHARGE, WELL):
        picture = drawn(replace(PAGE, state=state))
        panel.show(controller, picture)
        assert controller.seen() == picture.black
        assert controller.asleep
    assert controller.refreshes == 2


def test_the_page_says_who_what_and_whom_to_call_and_every_sentence_has_its_room():
    picture = drawn(PAGE)
    assert read(picture, 3, 2, wide=2, tall=2).startswith("Charge")
    assert read(picture, COLUMNS - 3 - 6 * ADVANCE, 6) == "kit-07"
    lines = [read(picture, 3, y, tall=2) for y in range(22, 101, 16)]
    assert " ".join(lines).rstrip() == f"{CHARGE.means} {CHARGE.do}"
    assert read(picture, 3, 104) == "Call Ana, 555 0100"
    assert (
        f"{read(picture, 3, 113)[:21]} {read(picture, COLUMNS - 3 - 18 * ADVANCE, 113)}"
        == "Sent: within the hour as of 22 Nov 14:00"
    )
    assert [s.name for s in STATES if " ".join(page.sentences(s)) != f"{s.means} {s.do}"] == []


odd = st.text(max_size=60) | st.sampled_from(["Zoë Åström", "Müller-Łukasiewicz", "名前", "", "x" * 99, "a\tb\n"])


@given(odd, st.sampled_from(STATES), odd)
def test_names_of_any_kind_stay_on_the_page(kit, state, call):
    picture = drawn(replace(PAGE, kit=kit, state=state, call=call))
    assert (len(picture.black), {len(row) for row in picture.black}) == (ROWS, {COLUMNS})
    assert read(picture, 3, 2, wide=2, tall=2).startswith(state.title)


@given(odd, st.integers(3, 50), st.integers(1, 5))
def test_wrapping_keeps_within_its_lines_and_loses_nothing_in_silence(text, width, lines):
    made = wrapped(text, width, lines)
    assert len(made) <= lines
    assert all(len(line) <= width for line in made)
    whole = spelt(text).replace(" ", "")
    assert "".join(made).replace(" ", "") == whole or made[-1].endswith("..."[:width])


def test_accents_go_and_what_is_not_drawn_is_a_box():
    assert spelt("Zoë  Łoś – ß") == "Zoe Los - ss"
    assert glyph("名") == glyph("語")
    assert glyph("名") not in glyphs().values()


def test_words_about_time_change_seldom():
    assert page.reached(None, NOON_NS) == "Sent: not since start"
    assert page.reached(NOON_NS, NOON_NS + HOUR_NS - 1) == "Sent: within the hour"
    assert page.reached(NOON_NS, NOON_NS + HOUR_NS) == "Sent: 22 Nov 12:00"
    assert page.as_of(NOON_NS + HOUR_NS - 1) == "as of 22 Nov 12:00"
    assert page.as_of(None) == ""
    assert page.shown(MEASURING) is WELL
    assert page.shown(CALL) is CALL


def test_a_panel_that_stays_busy_is_given_up():
    with pytest.raises(TimeoutError, match=r"busy for more than 0.05 s; hint: its BUSY wire"):
        panel.show(Ssd1680(looks=None), drawn(PAGE), 0.05)


# --- the thread ------------------------------------------------------------------------------------------------------------


def test_only_a_page_that_changed_is_drawn_and_the_last_one_whenever():
    shown: list[Page] = []
    showing = Showing(shown.append, 0.0)
    showing.start()
    other = replace(PAGE, state=WELL)
    for told, drawn_now in ((PAGE, [PAGE]), (replace(PAGE), [PAGE]), (other, [PAGE, other])):
        showing.tell(told)
        until(lambda wanted=drawn_now: shown == wanted)
    showing.close(PAGE)
    assert shown == [PAGE, other, PAGE]
    assert (showing.refreshes, showing.failures) == (3, 0)


def test_it_waits_between_two_refreshes_and_shows_only_the_latest():
    shown: list[Page] = []
    showing = Showing(shown.append, 3600.0)
    showing.start()
    showing.tell(PAGE)
    until(lambda: shown)
    for state in (WELL, CALL, NO_NETWORK):
        showing.tell(replace(PAGE, state=state))
    assert shown == [PAGE]
    showing.close()
    assert shown == [PAGE, replace(PAGE, state=NO_NETWORK)]


def test_a_panel_that_fails_is_tried_again_and_counted(caplog):
    left = [OSError(5, "Input/output error"), TimeoutError("busy")]
    shown: list[Page] = []

    def draw(wanted: Page) -> None:
        if left:
            raise left.pop(0)
        shown.append(wanted)

    showing = Showing(draw, 0.0)
    showing.start()
    showing.tell(PAGE)
    until(lambda: showing.refreshes)
    showing.close()
    assert (shown, showing.failures, showing.trouble) == ([PAGE], 2, None)
    assert len(caplog.records) == 1
    assert "Input/output error; measuring goes on" in caplog.text


def test_a_panel_that_hangs_does_not_hold_up_the_end(caplog):
    hanging, released = threading.Event(), threading.Event()

    def draw(_page: Page) -> None:
        hanging.set()
        released.wait(60)

    showing = Showing(draw, 0.0)
    showing.start()
    showing.tell(PAGE)
    assert hanging.wait(60)
    showing.close(timeout_s=0.01)
    assert "the last page was not shown" in caplog.text
    released.set()


def test_a_device_that_is_not_there_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        bus.KernelBus(str(tmp_path / "spidev0.0"), str(tmp_path / "gpiochip0"), 25, 23, 24)
    with pytest.raises(OSError, match="Inappropriate ioctl"):
        bus.KernelBus("/dev/null", "/dev/null", 25, 23, 24)


def test_numbers_and_layouts_are_those_of_the_kernels_headers(tmp_path):
    """Compiled, where there are a compiler and headers."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not Path("/usr/include/linux/gpio.h").exists():
        pytest.skip("no C compiler, or no kernel headers (linux-libc-dev)")
    asked = {
        "SPI_IOC_WR_MODE": bus.SPI_MODE,
        "SPI_IOC_WR_BITS_PER_WORD": bus.SPI_BITS,
        "SPI_IOC_WR_MAX_SPEED_HZ": bus.SPI_SPEED,
        "GPIO_V2_GET_LINE_IOCTL": bus.LINES,
        "GPIO_V2_LINE_GET_VALUES_IOCTL": bus.VALUES_GET,
        "GPIO_V2_LINE_SET_VALUES_IOCTL": bus.VALUES_SET,
        "GPIO_V2_LINE_FLAG_INPUT": bus.INPUT,
        "GPIO_V2_LINE_FLAG_OUTPUT": bus.OUTPUT,
        "sizeof(struct gpio_v2_line_request)": bus.REQUEST.size,
        "sizeof(struct gpio_v2_line_values)": bus.VALUES.size,
        "offsetof(struct gpio_v2_line_request, consumer)": 256,
        "offsetof(struct gpio_v2_line_request, config.flags)": 288,
        "offsetof(struct gpio_v2_line_request, num_lines)": 560,
        "offsetof(struct gpio_v2_line_request, fd)": bus.REQUEST.size - 4,
    }
    rows = "".join(f'printf("%llu\\n", (unsigned long long)({name}));' for name in asked)
    includes = "".join(f"#include <{h}>\n" for h in ("stdio.h", "stddef.h", "linux/gpio.h", "linux/spi/spidev.h"))
    (tmp_path / "a.c").write_text(f"{includes}int main(void) {{ {rows} return 0; }}\n")
    subprocess.run([compiler, "-o", tmp_path / "a", tmp_path / "a.c"], check=True)
    told = subprocess.run([tmp_path / "a"], capture_output=True, text=True, check=True).stdout.split()
    assert dict(zip(asked, map(int, told), strict=True)) == asked
    marked = bus.REQUEST.pack(*range(64), b"c", 7, 0, 9, 0, 11)
    assert re.search(b"\x07" + b"\0" * 7, marked[288:296])
    assert (marked[560], marked[-4]) == (9, 11)
