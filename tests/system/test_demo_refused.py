"""What cannot be rehearsed is refused with one clear line that names the mend, before anything is started."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rehearsals import DEMO, demo, lines_of

pytestmark = pytest.mark.system

HEAD = (
    "Timestamp,Longitude,Latitude,Speed,Operatorname,CellID,NetworkMode,RSRP,RSRQ,SNR,CQI,RSSI,DL_bitrate,UL_bitrate,State,"
    "LACHEX,RAWCELLID"
)
ROW = "2020.01.16_07.26.{second:02d},-8.38,51.93,{speed},B,12,LTE,{rsrp},-11,7.0,8,-85,9000,300,D,9CBA,11016972"


def log(path: Path, head: str = HEAD, *, rsrp: str = "-98", speed: str = "1", rows: int = 40) -> str:
    """A drive log of ``rows`` seconds."""
    path.write_text("\n".join([head, *(ROW.format(second=s, rsrp=rsrp, speed=speed) for s in range(rows))]) + "\n")
    return str(path)


def assert_refused(done: subprocess.CompletedProcess[str], status: int, *words: str) -> None:
    """One line on standard error with every word, no traceback, the right exit status."""
    lines = lines_of(done.stderr)
    assert done.returncode == status, done.stdout + done.stderr
    assert len(lines) == 1, done.stderr
    for word in words:
        assert word in lines[0]


def test_unknown_scenario(tmp_path: Path) -> None:
    assert_refused(demo("--scenario", "moonwalk", cwd=tmp_path), 2, "moonwalk", "commute")


def test_broken_toml(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "x"\nduration_s = = 3\n')
    assert_refused(demo("--scenario", "mine.toml", cwd=tmp_path), 2, "mine.toml:2")


def test_unknown_key_names_its_line(tmp_path: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "tandem_bench", "scenario", "show", "walk", "--file"],
        capture_output=True,
        text=True,
        check=True,
    )
    (tmp_path / "mine.toml").write_text(shown.stdout + "\n[weather]\nrain = true\n")
    assert_refused(demo("--scenario", "mine.toml", cwd=tmp_path), 2, "mine.toml:", "weather")


def test_replay_without_a_column(tmp_path: Path) -> None:
    good = log(tmp_path / "good.csv")
    bad = log(tmp_path / "bad.csv", HEAD.replace("RSRP", "Power"))
    assert_refused(demo("--replay", good, bad, cwd=tmp_path), 2, "bad.csv", "RSRP")


@pytest.mark.parametrize(("what", "value"), [("rsrp", "+12"), ("speed", "2000")])
def test_replay_with_absurd_values(tmp_path: Path, what: str, value: str) -> None:
    good = log(tmp_path / "good.csv")
    bad = log(tmp_path / "bad.csv", **{what: value})
    assert_refused(demo("--replay", good, bad, cwd=tmp_path), 2, "bad.csv:2")


def test_replay_of_a_missing_file(tmp_path: Path) -> None:
    assert_refused(demo("--replay", log(tmp_path / "good.csv"), "nowhere.csv", cwd=tmp_path), 2, "nowhere.csv")


@pytest.mark.parametrize("seconds", ["0", "-5", "1e9", "nan"])
def test_impossible_duration(tmp_path: Path, seconds: str) -> None:
    assert_refused(demo("--duration", seconds, cwd=tmp_path), 2, "--duration", "30 to 7200")


def test_folder_in_use(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("precious")
    assert_refused(demo("--duration", "60", "--out", "out", cwd=tmp_path), 2, "not empty", "--out")


def inside_mounts(script: str, *args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A rehearsal after ``script`` has changed mounts that only it sees."""
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", f'{script} && exec "$@"', "sh", *DEMO, *args],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_kernel_without_multipath_tcp(tmp_path: Path) -> None:
    done = inside_mounts("mount -t tmpfs none /proc/sys/net", "--duration", "60", "--out", "out", cwd=tmp_path)
    assert_refused(done, 3, "Multipath TCP")


def test_no_room_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    done = inside_mounts(
        "mount -t tmpfs -o size=64m none small", "--duration", "60", "--out", "small/out", cwd=tmp_path
    )
    assert_refused(done, 2, "MB free", "--out")


def test_not_root(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", *DEMO, "--duration", "60"]
    if (
        not os.access(sys.executable, os.X_OK)
        or subprocess.run([*argv[:5], sys.executable, "-c", ""], check=False, capture_output=True).returncode
    ):
        pytest.skip("this checkout's Python cannot be run by another user (a folder above it is closed)")
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert_refused(done, 3, "root", "sudo")
