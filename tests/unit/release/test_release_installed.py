"""Releases beside one another, and the command line."""

import json
import os
import subprocess
import sys

import pytest
from release_kit import ROLES, wheel_of
from tandem_release import disk, main, releases
from tandem_release.disk import ReleaseError

PROGRAM = ROLES / "collector/files/tandem-release"


def command(kit, *argv):
    files = str(ROLES / "collector/files")
    code = f"import sys; sys.path.insert(0, {files!r}); from tandem_release.main import main; sys.exit(main())"
    where = ["--home", str(kit.home), "--root", str(kit.root), "--json"]
    return subprocess.run([sys.executable, "-c", code, *where, *argv], capture_output=True, text=True, check=False)


def test_a_release_is_installed_once_and_runs_by_itself(kit):
    assert kit.install("1.0") == ("1.0", True)
    assert kit.install("1.0") == ("1.0", False)
    said = subprocess.run([kit.home / "1.0/bin/tandem"], capture_output=True, text=True, check=True)
    assert said.stdout == "1.0\n"
    assert kit.releases.installed() == ["1.0"]


def test_another_content_under_the_same_name_is_refused(kit, tmp_path):
    kit.install("1.0")
    other = wheel_of(tmp_path / "other.whl", "2.0")
    with pytest.raises(ReleaseError, match="another content"):
        kit.releases.install(other, "1.0")


@pytest.mark.parametrize("name", ["current", "staged", "../x", ".hidden", "a b", "é"])
def test_a_name_that_is_none_is_refused(kit, tmp_path, name):
    wheel = wheel_of(tmp_path / "a.whl", "1.0")
    with pytest.raises(ReleaseError, match="use letters"):
        kit.releases.install(wheel, name)


def test_a_release_half_removed_or_half_made_is_none_and_can_be_made_again(kit):
    kit.install("1.0")
    (kit.home / "1.0/release.json").unlink()
    (kit.home / ".1.0.tmp").mkdir()
    assert kit.releases.installed() == []
    assert kit.install("1.0") == ("1.0", True)


def test_a_release_for_a_python_that_is_gone_is_made_anew(kit):
    kit.install("1.0")
    told = json.loads((kit.home / "1.0/release.json").read_text())
    (kit.home / "1.0/release.json").write_text(json.dumps({**told, "python": "3.9"}))
    assert kit.install("1.0") == ("1.0", True)


def test_without_room_nothing_is_installed(kit, monkeypatch):
    monkeypatch.setattr(releases, "SPARE_BYTES", 10**18)
    with pytest.raises(ReleaseError, match="bytes are free") as raised:
        kit.install("1.0")
    assert raised.value.status == 3


def test_the_oldest_go_but_never_the_one_that_runs_or_the_one_before(kit):
    (kit.home / "wheels").mkdir()
    for index, version in enumerate(("1.0", "2.0", "3.0", "4.0")):
        kit.install(version)
        os.utime(kit.home / version / "release.json", (index, index))
        wheel_of(kit.home / f"wheels/{version}.whl", version)
    kit.place.put("2.0")
    kit.place.put("1.0")
    assert kit.releases.prune(3) == ["3.0"]
    assert kit.releases.prune(2) == ["4.0"]
    assert kit.releases.installed() == ["1.0", "2.0"]
    assert sorted(p.name for p in kit.home.glob("wheels/*")) == ["1.0.whl", "2.0.whl"]


def test_the_command_line(kit, tmp_path):
    wheel = wheel_of(tmp_path / "a.whl", "1.0")
    done = command(kit, "install", str(wheel))
    assert json.loads(done.stdout) == {"changed": True, "ok": True, "release": "1.0"}
    assert json.loads(command(kit, "install", str(wheel)).stdout)["changed"] is False
    kit.place.put("1.0")
    assert json.loads(command(kit, "status").stdout) == {
        "installed": ["1.0"],
        "current": "1.0",
        "previous": None,
        "unproven": False,
    }
    assert json.loads(command(kit, "recover").stdout) == {"changed": False, "ok": True}
    kit.place.keep("1.0")
    assert json.loads(command(kit, "recover").stdout) == {"changed": True, "ok": True, "release": "1.0"}


@pytest.mark.parametrize(
    ("argv", "status", "said"),
    [
        (["install", "none.whl"], 2, "name a wheel"),
        (["switch", "9.9"], 2, "not installed"),
        (["back"], 2, "no release before"),
        (["prune", "--keep", "1"], 2, "from 2 to 100"),
        (["switch", "1.0", "--steady", "-1"], 2, "seconds from 0"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(kit, argv, status, said):
    done = command(kit, *argv)
    assert done.returncode == status
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_two_do_not_work_at_once(kit, tmp_path):
    wheel = wheel_of(tmp_path / "a.whl", "1.0")
    with kit.releases.alone():
        done = command(kit, "install", str(wheel))
    assert (done.returncode, json.loads(done.stdout)["ok"]) == (1, False)
    assert "another tandem-release" in done.stderr


def test_the_program_is_python_that_the_probe_has():
    text = PROGRAM.read_text()
    compile(text, str(PROGRAM), "exec")
    assert text.startswith("#!/usr/bin/python3\n")


@pytest.mark.parametrize("words", [("install", "a.whl"), ("switch", "1.0"), ("back",), ("prune",)])
def test_a_root_that_would_forget_it_is_not_changed(kit, monkeypatch, capsys, words):
    kit.install("1.0")
    monkeypatch.setattr(disk.os.path, "ismount", lambda place: place == kit.root / "media/root-ro")
    where = ["--home", str(kit.home), "--root", str(kit.root)]
    assert main.main([*where, *words]) == 3
    assert "mend: tandem-root writable" in capsys.readouterr().err
    assert main.main([*where, "status"]) == 0
    assert main.main([*where, "recover"]) == 0
