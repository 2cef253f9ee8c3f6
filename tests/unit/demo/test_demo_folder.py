"""DIR: made, set aside, or refused; never overwritten."""

import os
from pathlib import Path

import pytest

from tandem_bench.demo import folder as folder_module
from tandem_bench.demo.folder import DemoFolder, FolderError
from tandem_bench.rig.rights import Owner

ME = Owner(os.getuid(), os.getgid())


def test_makes_the_layout_and_missing_parents(tmp_path: Path) -> None:
    made = DemoFolder(tmp_path / "a" / "b")
    made.make(ME)
    assert made.probe.is_dir()
    assert made.logs.is_dir()
    assert made.server.is_dir()


def test_an_earlier_rehearsal_is_set_aside_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = DemoFolder(tmp_path / "out")
    first.make(ME)
    first.write_campaign({"format": "tandem-campaign/1", "scenario": "first"}, ME)
    second = DemoFolder(tmp_path / "out")
    second.make(ME)
    aside = [path for path in tmp_path.iterdir() if path.name != "out"]
    assert len(aside) == 1
    assert "first" in (aside[0] / "campaign.json").read_text()
    assert str(aside[0]) in capsys.readouterr().out
    assert not second.campaign.exists()
    DemoFolder(tmp_path / "out").make(ME)
    assert len(list(tmp_path.iterdir())) == 3, "what a failed start left, too"


def test_a_folder_with_other_things_and_a_file_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(FolderError, match=r"not empty.*--out"):
        DemoFolder(tmp_path).make(ME)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(FolderError, match="is a file"):
        DemoFolder(tmp_path / "thesis.tex").make(ME)


def test_too_little_room_is_said_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "NEEDED_BYTES", 1 << 62)
    with pytest.raises(FolderError, match="MB free"):
        DemoFolder(tmp_path / "out").make(ME)


def test_room_is_held_back_and_given_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = DemoFolder(tmp_path / "out")
    made.make(ME)
    (reserve,) = made.bench.iterdir()
    assert reserve.stat().st_blocks * 512 >= folder_module.RESERVE_BYTES
    assert made.full() is None
    monkeypatch.setattr(folder_module, "LEAST_FREE_BYTES", 1 << 62)
    assert "disk is full; make room" in (made.full() or "")
    made.release_reserve()
    made.release_reserve()
    assert not list(made.bench.iterdir())
