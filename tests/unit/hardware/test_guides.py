"""The guides say what the code does, their links lead somewhere, and they print: one side for the commuter whatever is written in."""

import dataclasses
import re
import shlex
from pathlib import Path

import pytest

from tandem import devtools
from tandem.app.config_schema import TABLES
from tandem.schema.metrics import COMMON_FIELDS, COMMON_TAGS, MEASUREMENTS
from tandem.schema.status_led import STATES
from tandem_bench.cli.main import parser as bench_parser
from tandem_bench.gadget.description import CONTROLLERS, PROFILES, Endpoints, fits, gadget_of
from tandem_hardware import bom, guides, pages
from tandem_hardware.__main__ import main
from tandem_hardware.sources import FIELD, ROOT, SourceError

COMMUTER = " ".join((FIELD / "commuter.md").read_text(encoding="utf-8").split())
CONSENT = " ".join((FIELD / "consent.md").read_text(encoding="utf-8").split())

TOLD = {
    "The networks, once a second:": {"radio", "registration", "event", "round_trip"},
    "Its own measurements:": {
        *("subflow", "connection", "run_begun", "run", "run_usage", "phase", "aggregation", "verdict"),
        *("dash_segment", "dash_playback", "dash", "campaign", "campaign_step", "campaign_data"),
    },
    "Itself:": {"health", "temperature", "card", "software", "modem_health", "usage", "sim_usage", "spool", "clock"},
    "Its place,": {"position"},
}
"""Which sentence of the page tells of which kind of record."""
NEVER = re.compile(
    r"imsi|iccid|imei|msisdn|subscriber|phone|ssid|bssid|(^|_)mac($|_)|bluetooth|audio|image|camera|microphone|person|carrier|owner"
)


def test_every_kind_of_record_is_told_of() -> None:
    assert all(f"**{sentence}**" in COMMUTER for sentence in TOLD)
    told = [name for names in TOLD.values() for name in names]
    assert sorted(told) == sorted(MEASUREMENTS), "a kind of record that the page does not tell of, or that is gone"


def test_nothing_is_recorded_that_is_said_not_to_be() -> None:
    names = {*COMMON_TAGS, *(field.name for field in COMMON_FIELDS)}
    for measurement in MEASUREMENTS.values():
        names |= {*measurement.tags, *(field.name for field in measurement.fields)}
    assert [name for name in sorted(names) if NEVER.search(name)] == []
    assert "No SIM card number and no subscriber number leaves the kit." in COMMUTER
    assert "Records bear the kit's name, not yours." in COMMUTER
    assert "probe" in COMMON_TAGS


def test_the_cells_the_numbers_and_the_modes_are_those_of_the_code() -> None:
    def key(table: str, name: str):  # type: ignore[no-untyped-def]
        return next(key for key in TABLES[table] if key.name == name)

    mode, radius = key("position", "mode"), key("position.home_zone", "radius_m")
    assert {"eci", "tac", "plmn"} <= {field.name for field in MEASUREMENTS["radio"].fields}
    assert (key("polling", "period_s").default, key("capture", "snaplen_bytes").default) == (1.0, 128)
    assert 0.9 < key("position", "grid_deg").default * 111.2 < 1.2
    assert (radius.minimum, radius.maximum, mode.default) == (100, 20_000, "off")
    # Of the position itself unit/collector/position/test_position_privacy.py proves it.
    for words in (
        "They are recorded in every mode, at home too.",
        "no position is recorded, in any mode",
        "the first 128 bytes of each packet",
        "rounded to about one kilometre",
    ):
        assert words in COMMUTER, words
    for words in (
        "in every mode of position and in home zones too",
        "the first 128 bytes of each packet",
        "grid of about one kilometre",
        "each from 100 m to 20 km in radius",
    ):
        assert words in CONSENT, words
    for text in (COMMUTER, CONSENT):
        assert tuple(re.findall(r"☐ \*\*(\w+)\*\* –", text)) == mode.choices


def test_each_guide_is_listed_where_kits_are_handed_out() -> None:
    listed = (FIELD / "hand-out.md").read_text(encoding="utf-8")
    assert [name for name in guides.NAMES if f"`{name}`" not in listed] == []
    assert "(commuter.md)" in listed
    assert "field/log.md" in (ROOT / "docs" / "silent-kit.md").read_text(encoding="utf-8")


def batteries(*capacities_wh: float) -> list[str]:
    """The table's lines for batteries of these energies."""
    one = bom.load()["battery-10ah"]
    parts = {str(n): dataclasses.replace(one, capacity_wh=wh) for n, wh in enumerate(capacities_wh)}
    made = pages.environment(parts=parts, cases=dict.fromkeys(("paper", "standard", "5g")))
    return made.get_template("batteries.md.j2").render().splitlines()[2:]


def test_a_battery_in_an_aircraft() -> None:
    said = ["without asking", "the airline's approval", "the airline's approval", "not at all"]
    lines = batteries(5.0, 100.0, 100.1, 160.0, 160.1)  # a clock's cell is no power bank
    assert len(lines) == len(said)
    assert [words in line for words, line in zip(said, lines, strict=True)] == [True] * 4


def test_each_kits_battery_may_fly_without_asking() -> None:
    kits = {build for part in bom.load().values() if (part.capacity_wh or 0) > 5 for build in part.quantities}
    assert kits == {"paper", "standard", "5g"}
    assert "generated: batteries" in (FIELD / "regulatory.md").read_text(encoding="utf-8")
    assert "not at all" not in pages.with_blocks("regulatory.md", "<!-- generated: batteries -->")


def test_a_block_that_nothing_makes_is_told_with_its_line() -> None:
    text = "# Page\n\n<!-- generated: nothing -->\n"
    with pytest.raises(SourceError, match=r"\Ax.md:3: nothing makes a block 'nothing'; hint: one of batteries, "):
        pages.with_blocks("x.md", text, pages.environment())


GUIDE = " ".join((FIELD / "bench-unit.md").read_text(encoding="utf-8").replace("> ", "").split())
MODEM = gadget_of("tandem-a", PROFILES["ublox"], 1)


def test_what_a_controller_has_and_a_modem_needs() -> None:
    has, needs = CONTROLLERS["dwc2"], MODEM.endpoints
    two = Endpoints(2 * needs.into_host, 2 * needs.out_of_host)
    fits(MODEM, "dwc2")
    assert two.into_host > has.into_host
    assert (len(MODEM.ports), MODEM.network is None) == (2, False)
    for told in (
        f"(`dwc2`) has {has} endpoints",
        f"one modem needs {needs}; two would need {two}",
        f"`{has} endpoints`",
        f"one modem needs {needs}.",
        "One Pi plays one modem.",
        "two bench units",
        "two AT ports and a network device",
    ):
        assert told in GUIDE, told


def test_the_units_file_starts_what_there_is() -> None:
    unit = (ROOT / "firmware" / "bench" / "system" / "tandem-bench-gadget.service").read_text(encoding="utf-8")
    given = re.findall(r"^Environment=(.*)$", unit, re.MULTILINE)
    values = dict(pair.split("=") for line in given for pair in line.split())
    lines = re.findall(r"^ExecStart(?:Pre)?=/opt/tandem/\.venv/bin/tandem-bench (.*)$", unit, re.MULTILINE)
    assert len(lines) == 2
    for line in lines:
        bench_parser().parse_args(shlex.split(re.sub(r"\$\{(\w+)\}", lambda found: values[found[1]], line)))


A4 = pytest.approx((210, 297), abs=0.5)
LONG = "Dr. Wilhelmina Featherstonehaugh-Example, Department of Communication Networks, 0049 30 1234567 890, Monday to Friday from 9 to 17"
WITH_BROWSER = pytest.mark.skipif(
    devtools.find() is None,
    reason="no Chromium: package chromium-headless-shell or chromium, or TANDEM_CHROMIUM (Ubuntu has it as a snap only)",
)


@WITH_BROWSER
def test_the_commuters_page_is_one_side_of_a4_or_refused(tmp_path, monkeypatch, capsys):
    out = tmp_path / "page.pdf"
    arguments = ["--probe", "institute-of-mobile-kit-117b", "--call", LONG, "--position", "full", "--out", str(out)]
    assert main(["guide", "commuter", *arguments]) == 0
    assert guides.sheets(out.read_bytes()) == [A4]
    out.unlink()
    monkeypatch.setattr(guides, "SIZES", guides.SIZES[-1:])
    assert main(["guide", "commuter", "--call", "far too long " * 400, "--out", str(out)]) == 2
    assert "has to fit on one; hint: a shorter --call" in capsys.readouterr().err
    assert not out.exists()


@WITH_BROWSER
@pytest.mark.parametrize("name", [name for name in guides.NAMES if name != "commuter"])
def test_every_other_guide_prints(name: str, tmp_path: Path) -> None:
    out = tmp_path / "guide.pdf"
    assert main(["guide", name, "--out", str(out)]) == 0
    found = guides.sheets(out.read_bytes())
    assert found
    assert all(size == A4 for size in found)


@pytest.mark.parametrize("name", guides.NAMES)
def test_a_page_needs_nothing_beside_itself(name: str) -> None:
    page = guides.page(name, {})
    assert not re.search(r'(src|href)="(?!data:|https?:|#)', page)
    assert not re.search(r'src="https?:', page)
    assert "<script" not in page
    assert "@import" not in page
    assert "generated:" not in page
    assert "⟨" not in page


def test_a_blank_is_filled_or_a_line_to_write_on() -> None:
    filled = guides.page("commuter", {"probe": "kit-07", "call": "<b>Ada</b> & Co"}, "off")
    assert '<span class="filled">kit-07</span>' in filled
    assert "&lt;b&gt;Ada&lt;/b&gt; &amp; Co" in filled
    assert 'class="blank"' not in filled
    empty = guides.page("commuter", {})
    assert empty.count('class="blank"') == 2


def test_the_positions_mode_is_ticked_and_nobody_ticks_the_participants_boxes(tmp_path, capsys):
    for mode in guides.POSITIONS:
        page = guides.page("commuter", {}, mode)
        assert re.findall(r"☑ <strong>(\w+)</strong>", page) == [mode]
        assert page.count("☐") == 2
    assert main(["guide", "consent", "--position", "full", "--out", str(tmp_path / "x.html")]) == 2
    assert "leave out --position" in capsys.readouterr().err
    assert "☑" not in guides.page("consent", {})


def test_html_needs_no_browser(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TANDEM_CHROMIUM", "/nowhere/chromium")
    out = tmp_path / "page.html"
    assert main(["guide", "commuter", "--format", "html", "--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert main(["guide", "commuter", "--out", str(tmp_path / "page.pdf")]) == 3
    assert "hint: install chromium-headless-shell" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_the_lights_table_has_every_state_gravest_first_and_they_differ_without_their_colours() -> None:
    page = guides.page("commuter", {})
    at = [page.index(state.means) for state in STATES]
    assert at == sorted(at)
    assert page.count('<code class="blinks ') == len(STATES)
    for look in (pages.bars, pages.looks):
        assert len({look(state) for state in STATES}) == len(STATES)
