"""A browser's process: found, started, ended with all that it started, whatever it does."""

import contextlib
import os
import stat
import sys
import time
from pathlib import Path

import pytest

from tandem import devtools as family
from tandem.devtools import Browser, NoBrowserError, find

SCRIPT = Path(__file__).with_name("scripted_browser.py")


@pytest.fixture
def program(tmp_path):
    """A program that plays one word of the script."""

    def make(word):
        file = tmp_path / f"chromium-{word}"
        file.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{SCRIPT}" {word}\n')
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return str(file)

    return make


def soon():
    return time.monotonic() + 120


def left(browser):
    """What still runs of it."""
    return [
        pid for pid in family.members(str(browser._folder)) if Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    ]


def test_it_is_found_by_the_variable_then_by_name_and_never_as_a_snap(tmp_path, monkeypatch):
    for name, text in (("chromium", "#!/bin/sh\nexec /snap/bin/chromium\n"), ("google-chrome", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("TANDEM_CHROMIUM", raising=False)
    assert find() == str(tmp_path / "google-chrome")
    monkeypatch.setenv("TANDEM_CHROMIUM", str(tmp_path / "chromium"))
    assert find() == str(tmp_path / "chromium")
    monkeypatch.setenv("TANDEM_CHROMIUM", "/nowhere")
    assert find() is None


def test_it_comes_up_and_everything_of_it_goes(program):
    with contextlib.closing(Browser(program("family"), [])) as browser:
        assert browser.page(soon()) == "S"
        until_s = soon()
        while len(left(browser)) != 3:  # a process that is between fork and exec is not known by its environment
            assert time.monotonic() < until_s, left(browser)
            time.sleep(0.02)
        assert browser.sandbox is (os.geteuid() != 0)
    assert left(browser) == []
    assert not browser._folder.exists()


@pytest.mark.parametrize(
    ("word", "why", "within_s"),
    [
        ("dies", "FATAL: it died", 120),
        ("nonsense", "no JSON", 120),
        ("endless", "more than", 120),
        ("silent", "silent", 0.2),
    ],
)
def test_one_that_does_not_come_up_says_why(program, word, why, within_s):
    with (
        contextlib.closing(Browser(program(word), [], longest=300_000)) as browser,
        pytest.raises(NoBrowserError, match=why),
    ):
        browser.page(time.monotonic() + within_s)
    assert left(browser) == []


def test_the_profile_of_one_that_was_killed_is_removed_by_the_next_and_others_stay(program, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("tandem.devtools._YOUNG_S", -1.0)
    (tmp_path / "tandem-browser-dead").mkdir()
    (tmp_path / "tandem-browser-dead/lock").touch()
    (tmp_path / "tandem-browser-other").mkdir()  # without a lock it is not ours
    first, second = Browser(program("silent"), []), None
    try:
        second = Browser(program("silent"), [])
        left = {folder.name for folder in tmp_path.glob("tandem-browser-*")}
        assert left == {first._folder.name, second._folder.name, "tandem-browser-other"}
    finally:
        first.close()
        if second is not None:
            second.close()


def test_what_is_no_program_is_one_line(tmp_path):
    before = set(Path("/proc/self/fd").iterdir())
    with pytest.raises(NoBrowserError, match="hint: TANDEM_CHROMIUM names another"):
        Browser(str(tmp_path / "nothing"), [])
    assert len(set(Path("/proc/self/fd").iterdir())) <= len(before)
