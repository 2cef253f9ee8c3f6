"""``tandem-server dash build`` and ``tandem-server page record|import|build|list``: what the experiments ``dash`` and ``pageload`` load, in
the server's content folder."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tandem.devtools import NoBrowserError, find
from tandem.schema.manifest import PLAIN_NAME
from tandem_server.cli.command import Actions, ConfigError, EnvironmentLacks, add_command, hinted
from tandem_server.cli.configuration import load
from tandem_server.content import page_recording, page_synthetic, presentation
from tandem_server.content.page import (
    Captured,
    Page,
    PageError,
    PageStore,
    in_order,
    usable,
    verify,
    write,
)
from tandem_server.content.presentation import DURATION_S, SEGMENTS_S
from tandem_server.utc import utc

_OWN = "Stored pages are yours: the copyright of their sites stays with them, so do not pass them on."
_LONGEST_S = 6 * 3600


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    """Register the commands."""
    _add_dash(commands)
    _add_page(commands)


def _add_dash(commands: Actions[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("dash", help="make DASH content for the experiment dash")
    build = add_command(
        parser.add_subparsers(dest="dash", metavar="COMMAND", required=True),
        "build",
        _build_presentation,
        "make a presentation, from a video or synthetic",
        "Make a presentation in the content folder ([content] folder in server.toml): representations from 50 kbit/s at 240p to"
        " 15 Mbit/s at 4K, manifests by number, time, list and base. From a video with ffmpeg; without --video segments of random"
        " bytes, which take no room on the disk.",
    )
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


def _add_page(commands: Actions[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("page", help="record, import, make and list stored pages for the experiment pageload")
    actions = parser.add_subparsers(dest="page", metavar="COMMAND", required=True)
    record = add_command(
        actions,
        "record",
        _record,
        "load pages in a headless Chromium and store every answer",
        f"Load pages in a headless Chromium (TANDEM_CHROMIUM, or in PATH) and store every answer. {_OWN}",
    )
    record.add_argument("url", nargs="?", metavar="URL", help="http or https")
    record.add_argument(
        "--list", type=Path, metavar="FILE", help="URLs or names, one a line; RANK,NAME as in Tranco lists too"
    )
    record.add_argument("--first", type=int, metavar="N", help="of the list, only so many")
    record.add_argument("--timeout", type=float, default=60.0, metavar="S", help="for each page (60)")
    record.add_argument(
        "--no-sandbox", action="store_true", help="where Chromium's sandbox cannot be had; always so as root"
    )
    imported = add_command(
        actions,
        "import",
        _import,
        "store the page of a HAR file that a browser exported with content",
        f"Store the page of a HTTP archive (HAR 1.2) with content, as browsers' developer tools export it. {_OWN}",
    )
    imported.add_argument("har", type=Path, metavar="FILE.har")
    build = add_command(
        actions,
        "build",
        _build_page,
        "make a synthetic page by seed",
        "Make a page by seed: a document, style sheets, scripts and pictures of several origins.",
    )
    build.add_argument("--seed", type=int, default=1, help="(1)")
    build.add_argument("--objects", type=int, default=70, metavar="N", help="in all, 1 to 1000 (70)")
    build.add_argument("--bytes", type=int, default=2_000_000, metavar="N", help="of all bodies, about (2000000)")
    build.add_argument("--origins", type=int, default=6, metavar="N", help="1 to 50 (6)")
    build.add_argument("--scheme", choices=("http", "https"), default="https", help="(https)")
    add_command(
        actions,
        "list",
        _list,
        "the pages there are, each checked",
        "The pages there are; bodies are checked.",
        json="for a machine",
    )
    for word in (record, imported, build):
        word.add_argument("--name", metavar="NAME", help="the page's name; synthetic, or after its host")


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A folder to be filled, which takes the place of ``target`` when the block ends well. OSError."""
    making = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    making.mkdir(parents=True)
    try:
        yield making
        if target.exists():
            shutil.rmtree(target)
        making.rename(target)
    finally:
        shutil.rmtree(making, ignore_errors=True)


# --- Presentations ----------------------------------------------------------------------------------------------------------


def _build_presentation(args: Namespace) -> int:
    if not 1 <= args.seconds <= _LONGEST_S:
        raise ConfigError(f"--seconds {args.seconds}; hint: a whole number from 1 to {_LONGEST_S}")
    segments_s = _lengths(args.segments)
    name = args.name or (args.video.stem if args.video is not None else "synthetic")
    if not PLAIN_NAME.match(name):
        raise ConfigError(f"name {name!r}; hint: --name of letters, digits, '.', '_', '-', at most 64")
    ffmpeg = presentation.find_ffmpeg()
    if args.video is not None and not args.video.is_file():
        raise ConfigError(f"{args.video}: no such file; hint: name a video, or leave --video out")
    if args.video is not None and ffmpeg is None:
        raise EnvironmentLacks("no ffmpeg here; hint: install it, or leave --video out for a synthetic presentation")
    target = load(args.config).content.folder / name
    with _replacing(target) as making, hinted("see whether ffmpeg plays the video", presentation.EncodeError):
        if args.video is None or ffmpeg is None:
            presentation.build_synthetic(making, args.seconds, segments_s, args.seed)
        else:
            presentation.build_encoded(
                ffmpeg, args.video, making, args.seconds, segments_s, said=lambda text: print(text, file=sys.stderr)
            )
    print(f"{target}: {args.seconds} s, segments of {', '.join(map(str, segments_s))} s")
    return 0


def _lengths(text: str) -> list[int]:
    try:
        lengths = [int(part) for part in text.split(",")]
    except ValueError:
        lengths = []
    if not lengths or not all(1 <= length <= 60 for length in lengths) or len(set(lengths)) < len(lengths):
        raise ConfigError(f"--segments {text!r}; hint: whole seconds from 1 to 60, each once, as 1,6,15")
    return lengths


# --- Pages ------------------------------------------------------------------------------------------------------------------


def _record(args: Namespace) -> int:
    folder = load(args.config).content.folder
    if (args.url is None) == (args.list is None):
        raise ConfigError("name a URL, or --list FILE")
    if not 1 <= args.timeout <= 3600:
        raise ConfigError(f"--timeout {args.timeout:g}; hint: 1 to 3600 s")
    urls = [_url(args.url, "the URL")] if args.list is None else _listed(args.list, args.first)
    if args.name is not None and len(urls) != 1:
        raise ConfigError("--name is for one page; hint: leave it out, names come from the hosts")
    program = find()
    if program is None:
        raise EnvironmentLacks(
            "no Chromium here; hint: install chromium-headless-shell or chromium, or set TANDEM_CHROMIUM"
        )
    worst = 0
    for url in urls:
        try:
            found = page_recording.record(program, url, args.timeout, sandbox=False if args.no_sandbox else None)
            made = {"by": "record", "browser": found.browser}
            page, name = _put(folder, args.name or _name_of(url), in_order(found.objects), made, found.times_ms)
        except NoBrowserError as error:
            raise EnvironmentLacks(str(error)) from error
        except (page_recording.RecordError, PageError) as error:
            print(f"tandem-server: {error}", file=sys.stderr)
            worst = 1
            continue
        _print_left_out(found.failed)
        print(_line(name, page))
    return worst


def _import(args: Namespace) -> int:
    folder = load(args.config).content.folder
    try:
        found = page_recording.read_har(args.har.read_bytes())
        made = {"by": "import", "browser": found.browser}
        name = args.name or _name_of(found.objects[0].url)
        page, name = _put(folder, name, in_order(found.objects), made, found.times_ms)
    except FileNotFoundError as error:
        raise ConfigError(f"{args.har}: no such file") from error
    except (page_recording.HarError, PageError) as error:
        raise ConfigError(f"{args.har}: {error}") from error
    _print_left_out(found.left_out)
    print(_line(name, page))
    return 0


def _build_page(args: Namespace) -> int:
    for option, value, least, most in (
        ("objects", args.objects, 1, 1000),
        ("bytes", args.bytes, 1000, 200_000_000),
        ("origins", args.origins, 1, 50),
        ("seed", args.seed, 0, 10**9),
    ):
        if not least <= value <= most:
            raise ConfigError(f"--{option} {value}; hint: {least} to {most}")
    folder = load(args.config).content.folder
    objects = page_synthetic.make(args.seed, args.objects, args.bytes, args.origins, args.scheme)
    page, name = _put(folder, args.name or "synthetic-page", objects, {"by": "build", "seed": args.seed}, {})
    print(_line(name, page))
    return 0


def _list(args: Namespace) -> int:
    folder = load(args.config).content.folder
    pages, rows, worst = PageStore(folder), [], 0
    for name in pages.names():
        try:
            opened = pages.open(name)
            wrong = [] if opened is None else verify(opened)
        except (PageError, OSError) as error:
            opened, wrong = None, [str(error)]
        worst = worst or int(bool(wrong))
        rows.append({"name": name, **({} if opened is None else _figures(opened.page)), "wrong": wrong})
        if not args.json:
            print(name if opened is None else _line(name, opened.page))
            for line in wrong:
                print(f"  {line}; hint: make the page anew")
    if args.json:
        print(json.dumps(rows, indent=1))
    elif not rows:
        print(f"no page in {folder}; tandem-server page build makes one")
    return worst


def _put(
    folder: Path, name: str, objects: Sequence[Captured], made: dict[str, Any], times_ms: dict[str, float]
) -> tuple[Page, str]:
    if not PLAIN_NAME.match(name):
        raise ConfigError(f"name {name!r}; hint: --name of letters, digits, '.', '_', '-', at most 64")
    target = folder / name
    if target.exists() and not (target / "page.json").is_file():
        raise ConfigError(f"{target} is there and is no page; hint: another --name")
    with _replacing(target) as making:
        page = write(making, objects, {**made, "utc": utc(time.time_ns())}, times_ms)
    return page, name


def _figures(page: Page) -> dict[str, Any]:
    wire = [one.wire_bytes for one in page.objects]
    return {
        "url": page.url,
        "objects": len(page.objects),
        "origins": len(page.origins),
        "bytes": sum(one.bytes for one in page.objects),
        "wire_bytes": sum(w for w in wire if w is not None) if any(w is not None for w in wire) else None,
        "after_load": sum(one.after_load for one in page.objects),
        "made": dict(page.made),
    }


def _line(name: str, page: Page) -> str:
    f = _figures(page)
    recorded = "" if f["wire_bytes"] is None else f" ({f['wire_bytes']} when recorded)"
    return f"{name}: {f['url']}: {f['objects']} objects of {f['origins']} origins, {f['bytes']} bytes{recorded}"


def _print_left_out(lines: Sequence[str]) -> None:
    for line in lines[:20]:
        print(f"left out: {line}", file=sys.stderr)
    if len(lines) > 20:
        print(f"left out: {len(lines) - 20} more", file=sys.stderr)


def _name_of(url: str) -> str:
    host = urlsplit(url).hostname or "page"
    return re.sub(r"[^A-Za-z0-9._-]", "-", host).lstrip("._-")[:64] or "page"


def _url(text: str, where: str) -> str:
    url = text if "://" in text else f"https://{text}/"
    if not usable(url):
        raise ConfigError(f"{where}: {text[:80]!r} is no http or https URL")
    return url


def _listed(file: Path, first: int | None) -> list[str]:
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from error
    urls = []
    for number, line in enumerate(lines, 1):
        text = re.sub(r"^\d+,", "", line.strip())
        if text and not text.startswith("#"):
            urls.append(_url(text, f"{file}:{number}"))
    if not urls:
        raise ConfigError(f"{file}: no URL in it")
    return urls if first is None else urls[: max(0, first)]
