"""Guides on paper: one side for the commuter whatever is written in, blanks filled or left as lines, nothing fetched from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tandem.schema.status_led import STATES
from tandem_hardware.__main__ import main
from tandem_hardware.errors import SourceError
from tandem_hardware.guides import blanks, chromium, command, led_table, printed
from tandem_hardware.guides.pdf_pages import pages

A4 = pytest.approx((210, 297), abs=0.5)
LONG = "Dr. Wilhelmina Featherstonehaugh-Example, Department of Communication Networks, 0049 30 1234567 890, Monday to Friday from 9 to 17"
WITH_BROWSER = pytest.mark.skipif(
    chromium.find() is None,
    reason="no Chromium: package chromium-headless-shell or chromium, or TANDEM_CHROMIUM (Ubuntu has it as a snap only)",
)


@WITH_BROWSER
@pytest.mark.parametrize("call", ["", LONG])
def test_the_commuters_page_is_one_side_of_a4(call: str, tmp_path: Path) -> None:
    out = tmp_path / "page.pdf"
    arguments = ["--probe", "institute-of-mobile-kit-117b", "--call", call, "--position", "full", "--out", str(out)]
    assert main(["guide", "commuter", *arguments]) == 0
    assert pages(out.read_bytes()) == [A4]


@WITH_BROWSER
def test_a_wide_font_makes_the_letters_smaller_and_not_a_second_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = tmp_path / "sheet.css"
    sheet.write_text(printed._SHEET.read_text(encoding="utf-8") + "\nhtml { letter-spacing: 0.9px }", encoding="utf-8")
    monkeypatch.setattr(printed, "_SHEET", sheet)
    tried: list[int] = []
    print_it = chromium.pdf

    def counted(page: str) -> bytes:
        tried.append(len(pages(made := print_it(page))))
        return made

    monkeypatch.setattr(chromium, "pdf", counted)
    out = tmp_path / "page.pdf"
    assert main(["guide", "commuter", "--call", LONG, "--out", str(out)]) == 0
    assert pages(out.read_bytes()) == [A4]
    assert tried[-1] == 1
    assert set(tried[:-1]) == {2}, "the wide font was to need a smaller size"


@WITH_BROWSER
def test_a_commuters_page_that_does_not_fit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "SIZES", command.SIZES[-1:])
    out = tmp_path / "page.pdf"
    assert main(["guide", "commuter", "--call", "far too long " * 400, "--out", str(out)]) == 2
    assert "has to fit on one; mend: a shorter --call" in capsys.readouterr().err
    assert not out.exists()


@WITH_BROWSER
@pytest.mark.parametrize("name", [name for name in printed.NAMES if name != "commuter"])
def test_every_other_guide_prints(name: str, tmp_path: Path) -> None:
    out = tmp_path / "guide.pdf"
    assert main(["guide", name, "--out", str(out)]) == 0
    found = pages(out.read_bytes())
    assert found
    assert all(size == A4 for size in found)


@pytest.mark.parametrize("name", printed.NAMES)
def test_a_page_needs_nothing_beside_itself(name: str) -> None:
    page = printed.page(name, {})
    assert not re.search(r'(src|href)="(?!data:|https?:|#)', page)
    assert not re.search(r'src="https?:', page)
    assert "<script" not in page
    assert "@import" not in page
    assert "generated:" not in page
    assert "⟨" not in page


def test_a_blank_is_filled_or_a_line_to_write_on() -> None:
    filled = printed.page("commuter", {"probe": "kit-07", "call": "<b>Ada</b> & Co"}, "off")
    assert '<span class="filled">kit-07</span>' in filled
    assert "&lt;b&gt;Ada&lt;/b&gt; &amp; Co" in filled
    assert 'class="blank"' not in filled
    empty = printed.page("commuter", {})
    assert empty.count('class="blank"') == 2


def test_every_blank_is_known_and_used() -> None:
    used = set()
    for path in printed.FOLDER.glob("*.md"):
        if path.name != "README.md":
            used |= blanks.names(path.read_text(encoding="utf-8"))
    assert used == set(blanks.BLANKS)
    with pytest.raises(SourceError, match="no blank is called 'nobody'"):
        blanks.filled("⟨nobody⟩", {})


@pytest.mark.parametrize("mode", printed.POSITIONS)
def test_the_positions_mode_is_ticked(mode: str) -> None:
    page = printed.page("commuter", {}, mode)
    assert re.findall(r"☑ <strong>(\w+)</strong>", page) == [mode]
    assert page.count("☐") == 2


def test_nobody_ticks_the_participants_boxes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["guide", "consent", "--position", "full", "--out", str(tmp_path / "x.html")]) == 2
    assert "leave out --position" in capsys.readouterr().err
    assert "☑" not in printed.page("consent", {})


def test_html_needs_no_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TANDEM_CHROMIUM", "/nowhere/chromium")
    out = tmp_path / "page.html"
    assert main(["guide", "commuter", "--format", "html", "--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert main(["guide", "commuter", "--out", str(tmp_path / "page.pdf")]) == 3
    assert "mend: install chromium-headless-shell" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_the_lights_table_has_every_state_gravest_first() -> None:
    page, source = printed.page("commuter", {}), (printed.FOLDER / "commuter.md").read_text(encoding="utf-8")
    assert led_table.markdown() in source
    at = [page.index(state.means.replace("'", "&#x27;")) for state in STATES]
    assert at == sorted(at)
    assert page.count("<svg class='blinks'") == len(STATES)


def test_the_lights_look_different_without_their_colours() -> None:
    drawn = [led_table.bars(state) for state in STATES]
    assert len(set(drawn)) == len(drawn)
    assert len({led_table.words(state) for state in STATES}) == len(STATES)
