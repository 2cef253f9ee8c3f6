"""The real VLC for tests, and a short film that it can decode."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tandem_server.content.presentation import Rung, build_encoded, find_ffmpeg

REPOSITORY = Path(__file__).resolve().parents[2]
LADDER = (Rung("v0", 100_000, 256, 144), Rung("v1", 800_000, 426, 240))


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
    asked = subprocess.run(
        [
            *(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if os.geteuid() == 0 else []),
            program,
            "--version",
        ],
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
    command = [
        ffmpeg,
        "-v",
        "error",
        "-f",
        "lavfi",
        "-i",
        source,
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-crf",
        "30",
    ]
    subprocess.run([*command, str(into / "film.mp4")], check=True, timeout=120)
    build_encoded(ffmpeg, into / "film.mp4", made, seconds, [1], LADDER)
    return made
