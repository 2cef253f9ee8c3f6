"""The power budget and its command, and the share of time a campaign measures, against cases worked by hand beside each."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tandem.schema.campaign import Campaign
from tandem.schema.campaign_reader import parse
from tandem_hardware import bom, builds, pages
from tandem_hardware.bom import Part
from tandem_hardware.builds import Build, Builds, Feed, Usb
from tandem_hardware.power import Budget, Limit, budget, table
from tandem_hardware.power_cli import duty, main
from tandem_hardware.sources import FIELD, HARDWARE

PARTS = bom.load()
KNOWN = builds.load(PARTS)


def part(name: str, quantity: int, *, watts: tuple[float, float, float] | None = None, **more: float) -> Part:
    """One of a build named "paper"."""
    idle, typical, peak = watts or (None, None, None)
    empty = dict.fromkeys((field.name for field in dataclasses.fields(Part)), "")
    numbers = dict.fromkeys(bom.NUMBERS, None)
    return Part(
        **empty | numbers | more | {  # type: ignore[arg-type]
            "id": name, "quantities": {"paper": quantity}, "idle_w": idle, "typical_w": typical, "peak_w": peak,
            "alternatives": (), "estimates": frozenset(), "line": 2,
        }
    )  # fmt: skip


def small(*, low_a: float | None = 0.6, full_with: tuple[str, ...] = ()) -> tuple[dict[str, Part], Builds, Build]:
    """A Pi with two modems on its ports: 1, 2 and 4 W, and 0.5, 1.5 and 2.5 W each; a battery of 37 Wh of which 0.8 comes out."""
    parts = {
        one.id: one
        for one in (
            part("pi", 1, watts=(1.0, 2.0, 4.0)),
            part("stick", 2, watts=(0.5, 1.5, 2.5)),
            part("battery", 1, capacity_wh=37.0, feeds_a=2.4),
            part("supply", 1, feeds_a=2.0),
            part("strong", 1, feeds_a=5.0),
        )
    }
    feeds = {"pi": Feed("source", usb=False), "stick": Feed("pi", usb=True)}
    build = Build("Paper", "", "pi", "supply", feeds, "battery", name="paper")
    usb = Usb(1.2, "", low_a, full_with, None if full_with else "max_usb_current=1")
    return parts, Builds(5.0, "c", 2.0, "", 0.8, "", {"pi": usb}, {"paper": build}), build


def limit(found: Budget, kind: str, of: str | None = None) -> Limit:
    (one,) = (limit for limit in found.limits if limit.kind == kind and of in (None, limit.of))
    return one


def test_a_pi_and_two_sticks_by_hand() -> None:
    """idle 1.0 + 2 x 0.5 = 2.0 W; measuring 2.0 + 2 x 1.5 = 5.0 W; peak 4.0 + 2 x 2.5 = 9.0 W = 1.8 A.
    A quarter of the time measuring: 0.25 x 5.0 + 0.75 x 2.0 = 2.75 W = 0.55 A.
    The battery: 37 x 0.8 = 29.6 Wh; 29.6 / 2.75 = 10.7636 h. USB: 5.0 W / 5 V = 1.0 A of 1.2 A."""
    parts, known, build = small()
    found = budget(parts, known, build, 0.25)
    assert found.watts == pytest.approx({"idle": 2.0, "measuring": 5.0, "peak": 9.0})
    assert found.average_w == pytest.approx(2.75)
    assert found.amps("peak") == pytest.approx(1.8)
    assert found.battery_wh == pytest.approx(29.6)
    assert found.battery_hours == pytest.approx(10.7636, abs=1e-4)
    assert limit(found, "usb").drawn_a == pytest.approx(1.0)
    assert limit(found, "usb").margin_a == pytest.approx(0.2)
    assert limit(found, "usb").verdict == "kept"
    assert limit(found, "battery").margin_a == pytest.approx(0.6)


def test_a_margin_of_a_tenth_is_close() -> None:
    """1.8 A of a supply of 2.0 A: 0.2 left is a tenth, kept; of 1.9 A: 0.1 left, below 0.19: close; of 1.7 A: exceeded by 0.1."""
    parts, known, build = small()
    verdicts = []
    for feeds in (2.0, 1.9, 1.7):
        parts["supply"] = dataclasses.replace(parts["supply"], feeds_a=feeds)
        found = budget(parts, known, build, 0.25)
        verdicts.append((limit(found, "supply").verdict, found.exceeded))
    assert verdicts == [("kept", False), ("close", False), ("exceeded", True)]


def test_two_sticks_at_peak_are_too_much_for_the_ports_without_the_line_in_config_txt() -> None:
    """1.0 A of 0.6 A: 0.4 A too much."""
    parts, known, build = small()
    found = budget(parts, known, build, 0.25, stock_config=True)
    assert limit(found, "usb").margin_a == pytest.approx(-0.4)
    assert found.exceeded
    told = next(line for line in table(found, 2.0, "c").splitlines() if line.startswith("  exceeded"))
    assert told.endswith("hint: a powered hub between, or a feed of its own for what draws most")
    assert "the USB ports of pi, all together: 1.00 A at peak of 0.60 A" in told


def test_ports_that_a_strong_supply_raises_stay_low_on_a_battery() -> None:
    """As a Pi 5's: 1.2 A when "strong" feeds it directly, else 0.6 A; the sticks draw 1.0 A."""
    parts, known, build = small(full_with=("strong",))
    by_battery = budget(parts, known, build, 0.25, supply="strong")
    by_weak = budget(parts, known, build, 0.25, on_supply=True)
    by_strong = budget(parts, known, build, 0.25, supply="strong", on_supply=True)
    assert [limit(one, "usb").limit_a for one in (by_battery, by_weak, by_strong)] == [0.6, 0.6, 1.2]
    assert [one.exceeded for one in (by_battery, by_weak, by_strong)] == [True, True, False]
    assert by_strong.battery is None
    assert by_strong.battery_hours is None


def test_the_standard_build_by_hand() -> None:
    """At peak: Pi 4 6.25, hub 0.7, carriers 2 x 0.6, modules 2 x 3.0, GNSS 0.35, LED 0.05 = 14.55 W = 2.91 A; the supply's 3 A leave
    0.09 A: close. On the hub 1.2 + 6.0 + 0.35 = 7.55 W = 1.51 A of 3 A; on one port 0.6 + 3.0 = 3.6 W = 0.72 A of 1 A, and above
    USB 2.0's 0.5 A. On the Pi's own ports nothing: no limit is looked at."""
    found = budget(PARTS, KNOWN, KNOWN.builds["standard"], 1.0)
    assert found.watts["peak"] == pytest.approx(14.55)
    assert (limit(found, "supply").margin_a, limit(found, "supply").verdict) == (pytest.approx(0.09), "close")
    assert limit(found, "usb", "hub-powered").drawn_a == pytest.approx(1.51)
    assert limit(found, "port").drawn_a == pytest.approx(0.72)
    assert (limit(found, "standard").margin_a, limit(found, "standard").verdict) == (pytest.approx(-0.22), "close")
    assert {one.of for one in found.limits if one.kind == "usb"} == {"hub-powered"}
    assert not found.exceeded


def campaign(trigger: str, *, budget: str = "", steps: int = 1) -> Campaign:
    """Steps that take 40 s and move 1 MB over each path, 18 s of quiet between."""
    head = 'format = "tandem-campaign-file/1"\nname = "c"\ntitle = "t"\nroles = ["a", "b"]\nseed = 1\nquiet_s = 18\n'
    one = '[[step]]\nname = "s{n}"\nexperiment = "own"\nrepetitions = 9\nseconds = 40\nbytes = 1_000_000\n[step.trigger]\n'
    body = "".join(one.format(n=n) + trigger + "\n" for n in range(steps))
    return parse(f"{head}{budget}\n{body}", "c.toml")


ALWAYS = 'on = "always"'


@pytest.mark.parametrize(
    ("trigger", "more", "share", "runs"),
    [
        # 40 s and 2 s around it, then 18 s: one a minute, 120 in two hours, 42 s of each minute.
        (ALWAYS, {}, 0.7, 120),
        # Two such steps share the same time: no more than one run at a time.
        (ALWAYS, {"steps": 2}, 0.7, 120),
        # 60 runs a day: 60 x 42 / 7200. 30 MB a day at 1 MB a run: 30 x 42 / 7200.
        (ALWAYS, {"budget": "[budget]\nday_runs = 60"}, 0.35, 60),
        (ALWAYS, {"budget": "[budget]\nday_bytes = 30_000_000"}, 0.175, 30),
        # Every 300 s: 24 x 42 / 7200. At most every 120 s: 60.
        ('on = "periodic"\nevery_s = 300', {}, 0.14, 24),
        ('on = "poisson"\nmean_s = 300', {}, 0.14, 24),
        (f"{ALWAYS}\ngap_s = 120", {}, 0.35, 60),
        # Ten a day: 10 x 42 / 7200. A window of an hour within the two hours on: 60 runs.
        ('on = "mobility_start"\nexpected_per_day = 10', {}, 0.058333, 10),
        ('on = "window"\nbetween = "08:00-09:00"', {}, 0.35, 60),
    ],
)
def test_the_share_by_hand(trigger: str, more: dict[str, Any], share: float, runs: float) -> None:
    found = duty(campaign(trigger, **more), 2.0)
    assert (found.share, found.assumed) == (pytest.approx(share, abs=1e-5), ())
    assert (found.runs_per_day, found.bytes_per_day) == pytest.approx((runs, runs * 1e6))


def test_what_nothing_tells_is_taken_as_often_as_it_may_and_said() -> None:
    found = duty(campaign('on = "mobility_start"'), 2.0)
    assert (found.share, found.assumed) == (pytest.approx(0.7), ("s0",))


def test_it_runs_anywhere_without_set_up(tmp_path: Path) -> None:
    """No site packages, no PYTHONPATH, another working directory."""
    command = [sys.executable, "-I", "-S", str(HARDWARE / "power-budget"), "--build", "standard"]
    env = {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Standard (standard): ")
    assert os.access(HARDWARE / "power-budget", os.X_OK)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit status, what was printed, what was said of mistakes."""
    try:
        status = main(arguments)
    except SystemExit as exit_:
        status = int(str(exit_.code))
    return status, *capsys.readouterr()


def test_what_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, status, words in (
        ("standard", 0, "close     the supply supply-3a"),
        ("5g --on-supply --supply supply-3a", 1, "exceeded  the supply supply-3a: 4.29 A at peak of 3.00 A"),
        ("paper", 1, "exceeded  the USB ports of pi-2b, all together: 2.07 A at peak of 1.20 A"),
        ("5g --battery battery-10ah", 1, "exceeded  the battery battery-10ah"),
        ("standard --duty 0", 0, "0% of the time measuring (as told)"),
        ("standard --campaign cordero-delay --hours-on 8", 0, "cordero-delay, 8 h a day on"),
    ):
        got, out, err = told(capsys, "--build", *arguments.split())
        assert (got, err, words in out) == (status, "", True), out


def test_bad_input_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "c.toml"
    wrong.write_text('format = "tandem-campaign-file/1"\nnmae = "x"\n', encoding="utf-8")
    for arguments, words in (
        ("--campaign nothing", "nothing: there is no campaign of that name; hint: a file's path, or one of adarsh-"),
        (f"--campaign {wrong}", f"{wrong}:2: "),
        ("--battery supply-3a", "no battery of bom.csv; hint: one of battery-10ah"),
        ("--supply hub-powered", "no supply of bom.csv"),
        ("--duty 1.1", "no number from 0 to 1"),
        ("--hours-on 0", "no number from 0.1 to 24"),
        ("--duty 0.5 --campaign cordero-delay", "one of the two"),
    ):
        status, out, err = told(capsys, *arguments.split())
        assert (status, out, words in err, "Traceback" in err) == (2, "", True, False), err


def test_the_page_marks_estimates_and_sums() -> None:
    """The bench: 2 Pi Zero 18, 2 cards 12, hub 30, supply 9, 2 cables 4 EUR: 36 + 24 + 30 + 9 + 8 = 107;
    22 + 1 + 100 + 100 + 32 = 255 g."""
    text = pages.with_blocks("parts.md", (FIELD / "parts.md").read_text(encoding="utf-8"))
    bench = text.split("## Bench (`bench`)")[1].split("\n## ")[0]
    assert "Together: ≈ 107 EUR (prices of 2025-06), ≈ 255 g." in bench
    assert "| 2 | Raspberry Pi Zero 2 W (SC0510) | `pi-zero-2w` |" in bench
    assert "0.69 / 1.75 / ≈ 3" in bench
    assert "hub-powered (USB)" in bench
    assert "`stick-huawei-e3372`" in text.split("## In no build")[1].split("\n## ")[0]
    assert "[simcom 1e0e:9001]" in text
