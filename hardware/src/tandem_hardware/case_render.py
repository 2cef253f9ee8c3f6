"""Runs OpenSCAD: a part to be printed as STL, a picture as PNG.

LackError where it is not here, SourceError where it does not take the source.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tandem_hardware import stl
from tandem_hardware.case_layout import Layout
from tandem_hardware.errors import LackError, SourceError
from tandem_hardware.places import HARDWARE

FOLDER = HARDWARE / "case"
PIXELS = (1200, 800)
_MEND = "mend: ./kit hardware, or apt install openscad xvfb xauth libgl1-mesa-dri"
PICTURES: dict[str, tuple[str, float, float, float]] = {
    # Name: what is shown, the middle's height above the box's own (mm), how far the camera is as a multiple of the box's length, its tilt.
    "assembled": ("assembled", 0.0, 2.35, 55.0),
    "exploded": ("exploded", 75.0, 3.1, 68.0),
    "base": ("picture-base", 0.0, 2.35, 45.0),
    "lid": ("picture-lid", -15.0, 2.35, 40.0),
    "step-1-pi": ("step-1-pi", 0.0, 2.35, 45.0),
    "step-2-hub-battery": ("step-2-hub-battery", 0.0, 2.35, 45.0),
    "step-3-modems-antennas": ("step-3-modems-antennas", 0.0, 2.35, 45.0),
    "step-4-led-lid": ("step-4-led-lid", 35.0, 2.7, 62.0),
}


def printed(build: str, part: str, folder: Path = FOLDER) -> bytes:
    """``base`` or ``lid`` as binary STL."""
    with tempfile.TemporaryDirectory() as place:
        made = Path(place, "part.stl")
        _run([], made, folder, [f'build="{build}"', f'show="{part}"'], [])
        try:
            return stl.pack(stl.of_text(made.read_bytes()))
        except ValueError as error:
            raise SourceError(f"tandem.scad: build {build}, {part}: {error}") from error


def picture(name: str, of: Layout, folder: Path = FOLDER) -> bytes:
    """One of ``PICTURES``, of a build, as PNG."""
    show, lift, far, tilt = PICTURES[name]
    middle = (of.outer[0] / 2, of.outer[1] / 2, of.outer[2] / 2 + lift)
    camera = ",".join(f"{one:.1f}" for one in (*middle, tilt, 0, 25, far * of.outer[0]))
    if shutil.which("xvfb-run") is None:
        raise LackError(f"xvfb-run is not here, a screen for the case's pictures; {_MEND}")
    with tempfile.TemporaryDirectory() as place:
        made = Path(place, "picture.png")
        options = [
            f"--imgsize={PIXELS[0]},{PIXELS[1]}",
            f"--camera={camera}",
            "--projection=p",
            "--colorscheme=Tomorrow",
        ]
        _run(["xvfb-run", "-a"], made, folder, [f'build="{of.build}"', f'show="{show}"'], options)
        return made.read_bytes()


def _run(before: Sequence[str], made: Path, folder: Path, values: Sequence[str], options: Sequence[str]) -> None:
    if shutil.which("openscad") is None:
        raise LackError(f"openscad is not here, which renders the case; {_MEND}")
    defined = [word for value in values for word in ("-D", value)]
    command = [*before, "openscad", "-o", str(made), *defined, *options, str(folder / "tandem.scad")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = (done.stderr + done.stdout).strip().splitlines()
    if wrong := [line for line in said if line.startswith(("WARNING", "ERROR"))]:
        raise SourceError(f"tandem.scad: {wrong[0]}")
    if done.returncode or not made.exists():
        raise SourceError(f"tandem.scad: openscad ended with {done.returncode}: {''.join(said[-1:])}")
