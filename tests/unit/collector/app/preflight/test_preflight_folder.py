"""The folder of the check's own collector: nobody else's, and gone after any end."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tandem.app.config import load
from tandem.app.preflight.own_collector import OwnCollector, OwnFolder, sweep

HOLD = """
import pathlib, sys
from tandem.app.preflight.own_collector import OwnFolder
mine = OwnFolder(pathlib.Path(sys.argv[1]))
(mine.path / "spool").mkdir()
(mine.path / "spool/records").write_text("x")
print(mine.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _own_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))


@contextmanager
def another(run: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another check, that has its folder."""
    command = [sys.executable, "-c", HOLD, str(run)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process, Path(process.stdout.readline().strip())
        process.stdin.close()


def test_it_is_this_accounts_alone_and_goes_also_among_temporary_files(tmp_path: Path) -> None:
    mine = OwnFolder(tmp_path / "run")
    assert mine.path.parent == tmp_path / "run/tandem-preflight"
    assert [path.stat().st_mode & 0o777 for path in (mine.path, mine.path.parent)] == [0o700, 0o700]
    mine.remove()
    assert list(mine.path.parent.iterdir()) == []
    OwnFolder(tmp_path / "run").remove()
    mine = OwnFolder(tmp_path / "nowhere")
    assert mine.path.parent == tmp_path / f"tmp/tandem-preflight-{os.geteuid()}"
    mine.remove()
    sweep(tmp_path / "nowhere")
    assert list(mine.path.parent.iterdir()) == []


def test_what_a_killed_one_left_is_removed_by_the_next(tmp_path: Path) -> None:
    with another(tmp_path / "run") as (process, left):
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert (left / "spool/records").exists()
        mine = OwnFolder(tmp_path / "run")
        assert list(left.parent.iterdir()) == [mine.path]
        mine.remove()


def test_one_that_runs_is_left_alone_and_no_other_begins(tmp_path: Path) -> None:
    with another(tmp_path / "run") as (process, theirs):
        with pytest.raises(BlockingIOError):
            OwnFolder(tmp_path / "run")
        sweep(tmp_path / "run")
        assert (theirs / "spool/records").exists()
        process.kill()
        process.wait()
        sweep(tmp_path / "run")
        assert not theirs.exists()


@pytest.mark.parametrize("trap", ["a link", "open to others"])
def test_a_name_that_somebody_else_prepared_is_refused(tmp_path: Path, trap: str) -> None:
    base = tmp_path / f"tmp/tandem-preflight-{os.geteuid()}"
    (tmp_path / "theirs").mkdir(mode=0o700)
    if trap == "a link":
        base.symlink_to(tmp_path / "theirs")
    else:
        base.mkdir()
        base.chmod(0o777)
    with pytest.raises(PermissionError):
        OwnFolder(tmp_path / "nowhere")
    sweep(tmp_path / "nowhere")
    assert (tmp_path / "theirs").exists()


@pytest.mark.parametrize("token", ["t", "", None])
def test_the_token_is_not_copied(tmp_path: Path, token: str | None) -> None:
    good = (Path(__file__).parents[2] / "app" / "good.toml").read_text()
    (tmp_path / "config.toml").write_text(good.replace('ca_file = "ca.pem"\n', ""))
    (tmp_path / "token").write_text("t")
    config = load(tmp_path / "config.toml")
    config = replace(config, server=replace(config.server, token_file=tmp_path / "token"))
    if token is None:
        (tmp_path / "token").unlink()
    else:
        (tmp_path / "token").write_text(token)
    (tmp_path / "own").mkdir()
    alone = OwnCollector(config)._alone(tmp_path / "own")
    if token:
        assert alone.server.token_file == tmp_path / "token"
        assert not (tmp_path / "own/token").exists()
    else:
        assert alone.server.token_file.read_text() == "none"
