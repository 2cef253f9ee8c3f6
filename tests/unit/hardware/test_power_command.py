"""The command: from a bare checkout, exit statuses, what it prints and draws; what is made of parts and power
is as its sources make it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tandem_hardware import bom, builds
from tandem_hardware.bom_page import page
from tandem_hardware.places import HARDWARE
from tandem_hardware.power_cli import main


def test_it_runs_anywhere_without_set_up(tmp_path: Path) -> None:
    """No site packages, no PYTHONPATH, another working directory."""
    command = [sys.executable, "-I", "-S", str(HARDWARE / "power-budget"), "--build", "standard"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False
    )
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


def test_the_object_has_the_keys_that_the_readme_documents(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = told(capsys, "--json", "--stock-config")
    content = json.loads(out)
    assert status == 1, "the paper build's sticks draw more than a Pi 2 gives"
    assert [one["build"] for one in content["budgets"]] == list(bom.BUILDS)
    readme = (HARDWARE / "README.md").read_text(encoding="utf-8")
    first = content["budgets"][0]
    for key in (*content, *first, *first["limits"][0], *first["warnings"][0], *first["current_a"]):
        assert f"`{key}`" in readme or key in readme.split("`--json` prints")[1].split("##")[0].split("`"), key
    assert first["warnings"][0]["level"] == "exceeded"
    assert first["current_a"]["peak"] == pytest.approx(2.9)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ("standard", 0, "close     the supply supply-3a"),
        ("5g --on-supply --supply supply-3a", 1, "EXCEEDED: the supply supply-3a: 4.29 A at peak of 3.00 A"),
        ("paper", 1, "EXCEEDED: the USB ports of pi-2b, all together: 2.07 A at peak of 1.20 A"),
        ("paper --stock-config", 1, "EXCEEDED: the USB ports of pi-2b, all together: 2.07 A at peak of 0.60 A"),
        ("5g --battery battery-10ah", 1, "EXCEEDED: the battery battery-10ah"),
        ("bench", 0, "no battery"),
        ("standard --duty 0", 0, "0% of the time measuring (as told)"),
        ("standard --campaign cordero-delay --hours-on 8", 0, "cordero-delay, 8 h a day on"),
    ],
)
def test_what_it_prints(capsys: pytest.CaptureFixture[str], arguments: str, status: int, words: str) -> None:
    got, out, err = told(capsys, "--build", *arguments.split())
    assert (got, err) == (status, "")
    assert words in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--build", "tablet"), "invalid choice"),
        (("--campaign", "nothing"), "nothing: no such campaign; mend: a file, or one of adarsh-controlled"),
        (("--campaign", "/nowhere/c.toml"), "/nowhere/c.toml: no such campaign"),
        (("--battery", "supply-3a"), "no battery of bom.csv; mend: one of battery-10ah"),
        (("--supply", "hub-powered"), "no supply of bom.csv"),
        (("--duty", "1.1"), "no number from 0 to 1"),
        (("--duty", "nan"), "no number from 0 to 1"),
        (("--hours-on", "0"), "no number from 0.1 to 24"),
        (("--duty", "0.5", "--campaign", "cordero-delay"), "one of the two"),
        (("--plot", "power.pdf"), "neither .svg nor .png"),
        (("--plot", "/nowhere/at/all.svg"), "/nowhere/at/all.svg"),
    ],
)
def test_bad_input_is_told(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str) -> None:
    status, out, err = told(capsys, *arguments)
    assert (status, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


def test_a_campaign_file_with_a_mistake_is_told_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c.toml"
    path.write_text('format = "tandem-campaign-file/1"\nnmae = "x"\n', encoding="utf-8")
    status, out, err = told(capsys, "--campaign", str(path))
    assert (status, out) == (2, "")
    assert f"{path}:2: " in err
    assert "hint: " in err


def test_a_drawing_that_shows_something_else_is_told() -> None:
    pytest.importorskip("matplotlib")
    from tandem_hardware.power_plot import same_drawing

    kept = (HARDWARE / "power.svg").read_bytes()
    assert same_drawing(kept, kept.replace(b"M 41.4", b"M 41.6", 1)) is None
    assert same_drawing(kept, kept.replace(b">idle<", b">idling<")) == "other words"
    assert same_drawing(kept, kept.replace(b"#08306b", b"#08306c")) == "other shapes"
    path = kept.index(b'<path d="M ') + len(b'<path d="M ')
    assert same_drawing(kept, kept[:path] + b"1" + kept[path:]) not in (None, "other shapes", "other words")


def test_the_page_marks_estimates_and_sums() -> None:
    """The bench: 2 Pi Zero 18, 2 cards 12, hub 30, supply 9, 2 cables 4 EUR: 36 + 24 + 30 + 9 + 8 = 107;
    22 + 1 + 100 + 100 + 32 = 255 g."""
    parts = bom.load()
    text = page(parts, builds.load(parts))
    bench = text.split("## Bench (`bench`)")[1].split("\n## ")[0]
    assert "Together: ≈ 107 EUR (prices of 2025-06), ≈ 255 g." in bench
    assert "| 2 | Raspberry Pi Zero 2 W (SC0510) | `pi-zero-2w` |" in bench
    assert "0.69 / 1.75 / ≈ 3" in bench
    assert "hub-powered (USB)" in bench
    assert "`stick-huawei-e3372`" in text.split("## In no build")[1].split("\n## ")[0]
    assert "[simcom 1e0e:9001]" in text
