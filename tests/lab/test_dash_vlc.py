"""VLC as the player: the real one, against a scripted server; and programs in its place that fail as it might."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from dash_server import Answer, DashEndpoint, manifest, play, serving, wanted

from support.experiment_process import Run
from support.two_paths import PATHS, REPOSITORY, SERVER, await_true, lab, up, why_not
from tandem_server.cli.main import main as server
from tandem_server.content.presentation import LADDER, Rung, build_encoded, find_ffmpeg

FILM = (Rung("v0", 100_000, 256, 144), Rung("v1", 800_000, 426, 240))


def vlc() -> str | None:
    """As ``kit`` finds it."""
    there = (os.environ.get("TANDEM_VLC"), str(REPOSITORY / "build/vlc/vlc"), shutil.which("vlc"))
    return next((p for p in there if p and os.access(p, os.X_OK)), None)


def why_no_vlc() -> str | None:
    """What is missing, None when nothing is."""
    program = vlc()
    if program is None:
        return "no VLC; ./kit test takes it out of the distribution's packages"
    user = Path(program).stat().st_uid or 65534
    as_nobody = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if os.geteuid() == 0 else []
    asked = subprocess.run(
        [*as_nobody, program, "--version"],
        capture_output=True,
        check=False,
        env={**os.environ, "HOME": "/nonexistent"},
    )
    if asked.returncode != 0:
        return f"{program} cannot be started by a user who is not root: {asked.stderr.decode().strip()[-120:]}"
    if find_ffmpeg() is None:
        return "no ffmpeg to make a film for VLC; ./kit test --all installs it"
    return None


def film(into: Path, seconds: int) -> Path:
    """A film of ``seconds`` in segments of 1 s, at 100 and 800 kbit/s, in the folder ``into``/film."""
    ffmpeg, made = find_ffmpeg(), into / "film"
    assert ffmpeg is not None
    made.mkdir(parents=True)
    source = f"testsrc2=size=426x240:rate=24:duration={seconds},noise=alls=20:allf=t"
    encoded = ["-c:v", "libx264", "-preset", "ultrafast", "-crf", "30", str(into / "film.mp4")]
    subprocess.run([ffmpeg, "-v", "error", "-f", "lavfi", "-i", source, *encoded], check=True, timeout=120)
    build_encoded(ffmpeg, into / "film.mp4", made, seconds, [1], FILM)
    return made


NO_VLC, NO_LAB = why_no_vlc(), why_not()
needs_vlc = pytest.mark.skipif(NO_VLC is not None, reason=str(NO_VLC))
SECONDS = 14
CAMPAIGNS = REPOSITORY / "docs/campaigns/campaigns.md"
SOON = {"startup_buffer_s": 1, "resume_buffer_s": 1}


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    return film(tmp_path_factory.mktemp("content"), SECONDS)


@pytest.fixture
def real(monkeypatch):
    monkeypatch.setenv("TANDEM_VLC", str(vlc()))


def served(content, delay_s=lambda _representation, _number: 0.0):
    """A script that serves the film; ``delay_s``: of a segment's second half."""

    def script(target, _range):
        file = content / target.partition("/film/")[2]
        if not file.is_file():
            return Answer(b"none", status=404)
        if file.suffix != ".m4s":
            return Answer(file.read_bytes())
        return Answer(file.read_bytes(), after_s=delay_s(file.parent.name, file.stem))

    return script


@needs_vlc
@pytest.mark.usefixtures("real")
def test_vlc_plays_stalls_and_goes_down_and_is_told_as_the_server_saw_it(tmp_path, content):
    """Segment 8, whichever it is, comes 10 s late: at most 8 s of video were there when it was asked for."""
    with serving(served(content, lambda _, number: 10.0 if number == "00008" else 0.05)) as endpoint:
        told = play(endpoint, tmp_path, player="vlc", mpd="1s-number.mpd", buffer_max_s=4, stall_s=30, **SOON)
        segments = [target.split("/")[-2:] for target in endpoint.asked if target.endswith(".m4s")]
        assert endpoint.connections == 1
    result = told["result"]
    assert told["failure"] is None
    assert result["player"] == {"name": "vlc", "version": result["player"]["version"], "logic": "rate"}
    assert result["player"]["version"][0].isdigit()
    assert [row["representation"] for row in told["segments"]] == [representation for representation, _ in segments]
    assert [name for _, name in segments] == [f"{n:05d}.m4s" for n in range(1, SECONDS + 1)]
    assert result["switches"] == sum(a[0] != b[0] for a, b in pairwise(segments)) > 0
    assert result["bytes"] == sum((content / "1s" / r / name).stat().st_size for r, name in segments)
    assert result["startup_delay_ms"] > 0
    stall = max(result["rebuffering"], key=lambda one: one["duration_s"])
    late = told["segments"][7]
    # 10 s late, less what was in the buffer; VLC says once a second where it is
    assert stall["duration_s"] > 10 - 8 - 1
    assert 0 < stall["media_s"] <= 7 + 1
    assert late["stall_ms"] > 0
    assert result["play_s"] > SECONDS + result["startup_delay_ms"] / 1000 + result["stalled_s"] - 2
    assert all(row["rule"] == "vlc-rate" and row["shares"] == {"a": 1.0} for row in told["segments"])
    states = [r.fields["state"] for r in told["records"] if r.measurement == "dash_playback"]
    changes = [state for n, state in enumerate(states) if not n or state != states[n - 1]]
    assert changes[:2] == ["starting", "playing"]
    assert "stalled" in changes
    assert changes[-1] == "ended"
    (whole,) = [r for r in told["records"] if r.measurement == "dash"]
    assert (whole.tags["rule"], whole.fields["whole"], whole.fields["stalls"]) == ("vlc-rate", True, result["stalls"])


@needs_vlc
def test_the_player_that_is_there_plays_and_each_run_says_which(tmp_path, content, monkeypatch):
    for program, name, rule in ((str(vlc()), "vlc", "vlc-rate"), (str(tmp_path / "none"), "own", "fixed")):
        monkeypatch.setenv("TANDEM_VLC", program)
        with serving(served(content)) as endpoint:
            told = play(endpoint, tmp_path, player="auto", abr="fixed", mpd="1s-number.mpd", seconds=3, **SOON)
        assert told["failure"] is None, name
        assert told["result"]["player"]["name"] == name
        assert told["player"] == {"asked": "auto", "name": name}
        (whole,) = [r for r in told["records"] if r.measurement == "dash"]
        assert whole.tags["rule"] == rule


@needs_vlc
@pytest.mark.usefixtures("real")
@pytest.mark.skipif(NO_LAB is not None, reason=str(NO_LAB))
@pytest.mark.lab
def test_vlc_goes_over_both_paths_within_the_session(tmp_path, content):
    with lab() as made:
        up(made)
        endpoint = made.server.inside(lambda: DashEndpoint(served(content, lambda *_: 0.1), 262, ""))
        try:
            over = {"host": SERVER, "enter": made.probe.enter, "kind": "mptcp", "path": "b", "paths": PATHS}
            told = play(endpoint, tmp_path, player="vlc", mpd="1s-number.mpd", seconds=4, **over, **SOON)
            opened = endpoint.opened[0]
        finally:
            endpoint.close()
    result = told["result"]
    assert told["failure"] is None
    assert (opened["kind"], opened["path"]) == ("mptcp", "b")
    assert not result["fallback"]
    assert {subflow["path"] for subflow in result["subflows"]} == {"a", "b"}
    assert result["play_s"] > 4


@needs_vlc
@pytest.mark.usefixtures("real")
def test_a_network_that_fails_ends_vlc_with_what_was_played(tmp_path, content):
    scale, film = 12288, served(content)  # ffmpeg's timescale for 24 frames a second

    def script(target, part):
        return Answer(b"gone", status=410) if target.endswith(f"/t{5 * scale}.m4s") else film(target, part)

    with serving(script) as endpoint:
        told = play(endpoint, tmp_path, player="vlc", mpd="1s-time.mpd", **SOON)
    assert told["failure"] == {"reason": "HTTP 410 gone", "retry": False}
    assert told["result"]["media_s"] == 5


@needs_vlc
@pytest.mark.usefixtures("real")
def test_a_manifest_that_vlc_misreads_is_a_recorded_failure(tmp_path, content):
    """A list with a timeline, which our own player plays: VLC 3 asks for its first segment again and again."""
    with serving(served(content)) as endpoint:
        told = play(endpoint, tmp_path, player="vlc", mpd="1s-list.mpd", **SOON)
        assert len(endpoint.asked) < 12
    assert "again and again: it cannot follow this manifest" in told["failure"]["reason"]


@pytest.mark.skipif(find_ffmpeg() is None, reason="no ffmpeg to encode with; ./kit test --all installs it")
def test_a_video_of_ones_own_becomes_content_by_the_printed_command(tmp_path, capsys):
    source = ["-f", "lavfi", "-i", "testsrc2=size=426x240:rate=24:duration=1"]
    subprocess.run([str(find_ffmpeg()), "-v", "error", *source, str(tmp_path / "bbb.mp4")], check=True, timeout=120)
    (tmp_path / "server.toml").write_text('[content]\nfolder = "films"\n')
    printed = re.findall(r"tandem-server (dash build --name bbb --video \S+?)[`\s]", CAMPAIGNS.read_text())
    words = [str(tmp_path / word) if word.endswith(".mp4") else word for word in printed[0].split()]
    short = ("--seconds", "1", "--segments", "1")
    assert server(["dash", "build", *words[2:], "--config", str(tmp_path / "server.toml"), *short]) == 0
    assert "bbb: 1 s, segments of 1 s" in capsys.readouterr().out
    film = tmp_path / "films" / "bbb"
    told = re.findall(r'<Representation id="(v[0-9])"[^>]* height="([0-9]+)"', (film / "1s-number.mpd").read_text())
    assert {name: int(height) for name, height in told} == {rung.id: rung.height for rung in LADDER}
    assert all((film / "1s" / rung.id / "00001.m4s").stat().st_size > 0 for rung in LADDER)


BAD = [
    (Answer(b"<MPD"), "MPD: line 1: no XML"),
    (Answer(b'<MPD type="dynamic"/>'), "only stored ones are played"),
    (
        Answer(manifest((1,), 1, 1).replace(b"<Period>", b"<BaseURL>http://192.0.2.1/</BaseURL><Period>")),
        "is not on this server",
    ),
    (Answer(b"none", status=404), "HTTP 404 none"),
]


@needs_vlc
@pytest.mark.usefixtures("real")
def test_a_manifest_that_cannot_be_followed_is_a_recorded_failure(tmp_path):
    for answer, reason in BAD:
        with serving(lambda *_, answer=answer: answer) as endpoint:
            told = play(endpoint, tmp_path, player="vlc", attempts=1, deadline_s=240)
        assert reason in told["failure"]["reason"], answer
        assert told["result"] is None, answer


@needs_vlc
@pytest.mark.usefixtures("real")
def test_what_nobody_can_decode_is_no_play(tmp_path):
    """Random bytes, as synthetic content is."""

    def script(target, _range):
        return Answer(manifest((200_000,), 4, 1.0) if target.endswith(".mpd") else os.urandom(20_000))

    with serving(script) as endpoint:
        told = play(endpoint, tmp_path, player="vlc", deadline_s=240)
    assert told["failure"]["reason"].startswith("VLC ended before it showed anything")


@pytest.fixture
def public():
    """A folder for anybody: as root VLC is started as nobody, and pytest's own folders are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


def stand_in(folder: Path, script: str) -> tuple[str, str]:
    """The environment variable by which VLC is a shell script, which leaves its number in the file ``pid``."""
    program = folder / "vlc"
    program.write_text(f"#!/bin/sh\necho $$ >{folder}/pid\n{script}\n")
    program.chmod(0o755)
    return "TANDEM_VLC", str(program)


def gone(folder: Path) -> bool:
    """Or dead, and nobody has asked for its status: in a namespace whose first process is no init."""
    try:
        told = Path(f"/proc/{int((folder / 'pid').read_text())}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return told.rpartition(")")[2].split()[0] == "Z"


def test_a_vlc_that_hangs_and_will_not_end_is_ended(tmp_path, public, monkeypatch):
    monkeypatch.setenv(*stand_in(public, "trap '' TERM; while :; do sleep 0.2; done"))
    with serving(lambda *_: Answer(b"")) as endpoint:
        told = play(endpoint, tmp_path, player="vlc", deadline_s=2)
    assert told["failure"] == {"reason": "deadline passed", "retry": True}
    assert told["result"] is None
    assert gone(public)


def test_a_vlc_that_dies_is_a_failure_with_its_last_word(tmp_path, public, monkeypatch):
    monkeypatch.setenv(*stand_in(public, "echo '[0] main libvlc error: no room' >&2; exit 7"))
    with serving(lambda *_: Answer(b"")) as endpoint:
        told = play(endpoint, tmp_path, player="vlc")
    assert told["failure"] == {"reason": "VLC ended before it showed anything (status 7): no room", "retry": False}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_vlc_outlives_the_experiment(tmp_path, public, number):
    # A killed experiment leaves VLC's folder behind.
    environment = dict([stand_in(public, "exec sleep 1000")], TMPDIR=str(public))
    with serving(lambda *_: Answer(b"")) as endpoint:
        run = Run("dash", wanted(endpoint, tmp_path, player="vlc"), **environment)
        await_true(
            lambda: (public / "pid").exists() and (public / "pid").read_text().strip() != "", 60, "it is started"
        )
        run.process.send_signal(number)
        if number == signal.SIGTERM:
            assert run.end()["failure"]["reason"] == "stopped"
        run.process.communicate(timeout=60)
    await_true(lambda: gone(public), 60, "it has gone")


def test_without_vlc_it_is_refused_plainly(tmp_path):
    with serving(lambda *_: Answer(b"")) as endpoint:
        run = Run("dash", wanted(endpoint, tmp_path, player="vlc"), TANDEM_VLC=str(tmp_path / "none"))
        _, said = run.process.communicate(timeout=240)
        assert endpoint.opened == []
    assert run.process.returncode == 3
    assert said == "dash: no VLC here; hint: apt-get install vlc-bin vlc-plugin-base, or player = own\n"
