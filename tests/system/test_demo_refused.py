"""What cannot be rehearsed is refused with one clear line that names the mend, before anything is started."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.rehearsals import DEMO, demo, lines_of

pytestmark = pytest.mark.system


def assert_refused(done: subprocess.CompletedProcess[str], status: int, *words: str) -> None:
    """One line on standard error with every word, no traceback, the right exit status."""
    lines = lines_of(done.stderr)
    assert done.returncode == status, done.stdout + done.stderr
    assert len(lines) == 1, done.stderr
    for word in words:
        assert word in lines[0]


def test_what_was_asked_for_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text('name = "x"\nduration_s = = 3\n')
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "thesis.tex").write_text("precious")
    # What else can be wrong with a scenario or a log: unit/bench/scenario.
    for args, words in (
        (("--scenario", "moonwalk"), ("moonwalk", "commute")),
        (("--scenario", "broken.toml"), ("broken.toml:2",)),
        (("--replay", "nowhere.csv", "nowhere.csv"), ("nowhere.csv",)),
        (("--duration", "29"), ("--duration", "30 to 7200")),
        (("--duration", "nan"), ("--duration", "30 to 7200")),
        (("--duration", "60", "--out", "used"), ("not empty", "--out")),
    ):
        assert_refused(demo(*args, cwd=tmp_path), 2, *words)


def inside_mounts(script: str, *args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A rehearsal after ``script`` has changed mounts that only it sees."""
    argv = ["unshare", "--mount", "sh", "-c", f'{script} && exec "$@"', "sh", *DEMO, *args]
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=240, check=False)


def test_kernel_without_multipath_tcp(tmp_path: Path) -> None:
    done = inside_mounts("mount -t tmpfs none /proc/sys/net", "--duration", "60", "--out", "out", cwd=tmp_path)
    assert_refused(done, 3, "Multipath TCP")


def test_not_root(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", *DEMO, "--duration", "60"]
    if (
        not os.access(sys.executable, os.X_OK)
        or subprocess.run([*argv[:5], sys.executable, "-c", ""], check=False, capture_output=True).returncode
    ):
        pytest.skip("this checkout's Python cannot be run by another user (a folder above it is closed)")
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert_refused(done, 3, "root", "sudo")
