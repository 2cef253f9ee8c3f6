"""``tandem-server dash build``: a presentation for the experiment ``dash`` into the server's content folder."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from argparse import Namespace
from pathlib import Path

from tandem_server.cli.config_file import add_config
from tandem_server.cli.configuration import load
from tandem_server.cli.stop import ConfigError, EnvironmentLacks, with_plain_ends
from tandem_server.content import encode, synthetic
from tandem_server.content.ladder import DURATION_S, SEGMENTS_S

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_LONGEST_S = 6 * 3600


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser("dash", help="make DASH content for the experiment dash")
    words = parser.add_subparsers(dest="dash", metavar="COMMAND", required=True)
    build = words.add_parser(
        "build",
        help="make a presentation, from a video or synthetic",
        description="Make a presentation in the content folder ([content] folder in server.toml): representations from 50 kbit/s at 240p to"
        " 15 Mbit/s at 4K, manifests by number, time, list and base. From a video with ffmpeg; without --video segments of random"
        " bytes, which take no room on the disk.",
    )
    add_config(build)
    build.add_argument("--name", metavar="NAME", help="the presentation's name; synthetic, or the video's")
    build.add_argument("--video", type=Path, metavar="FILE", help="a video, of any kind that ffmpeg reads")
    build.add_argument("--seconds", type=int, default=DURATION_S, help=f"how much of it ({DURATION_S})")
    build.add_argument(
        "--segments",
        default=",".join(map(str, SEGMENTS_S)),
        metavar="S,S",
        help=f"lengths of segments in whole seconds ({','.join(map(str, SEGMENTS_S))})",
    )
    build.add_argument("--seed", type=int, default=1, help="of a synthetic presentation's sizes (1)")
    build.set_defaults(func=_build)


@with_plain_ends
def _build(args: Namespace) -> int:
    if not 1 <= args.seconds <= _LONGEST_S:
        raise ConfigError(f"--seconds {args.seconds}; hint: a whole number from 1 to {_LONGEST_S}")
    segments_s = _lengths(args.segments)
    name = args.name or (args.video.stem if args.video is not None else "synthetic")
    if not _NAME.match(name):
        raise ConfigError(f"name {name!r}; hint: --name of letters, digits, '.', '_', '-', at most 64")
    ffmpeg = encode.find_ffmpeg()
    if args.video is not None and not args.video.is_file():
        raise ConfigError(f"{args.video}: no such file; hint: name a video, or leave --video out")
    if args.video is not None and ffmpeg is None:
        raise EnvironmentLacks("no ffmpeg here; hint: install it, or leave --video out for a synthetic presentation")
    target = load(args.config).content.folder / name
    making = target.with_name(f".{name}.{os.getpid()}.tmp")
    making.mkdir(parents=True)
    try:
        if args.video is not None and ffmpeg is not None:
            encode.build(ffmpeg, args.video, making, args.seconds, segments_s, said=_say)
        else:
            synthetic.build(making, args.seconds, segments_s, args.seed)
        if target.exists():
            shutil.rmtree(target)
        making.rename(target)
    except encode.EncodeError as error:
        raise EnvironmentLacks(str(error)) from error
    finally:
        shutil.rmtree(making, ignore_errors=True)
    print(f"{target}: {args.seconds} s, segments of {', '.join(map(str, segments_s))} s")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _lengths(text: str) -> list[int]:
    try:
        lengths = [int(part) for part in text.split(",")]
    except ValueError:
        lengths = []
    if not lengths or not all(1 <= length <= 60 for length in lengths) or len(set(lengths)) < len(lengths):
        raise ConfigError(f"--segments {text!r}; hint: whole seconds from 1 to 60, each once, as 1,6,15")
    return lengths
