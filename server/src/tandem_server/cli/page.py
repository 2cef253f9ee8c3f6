"""``tandem-server page record | import | build | list``: stored pages for the experiment ``pageload``, into the server's content folder."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
from argparse import Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tandem.devtools.browser import NoBrowserError, find
from tandem_server.cli.config_file import add_config
from tandem_server.cli.configuration import load
from tandem_server.cli.stop import ConfigError, EnvironmentLacks, with_plain_ends
from tandem_server.content.page import har, recording, synthetic
from tandem_server.content.page.index import Page, PageError
from tandem_server.content.page.store import NAME, Captured, PageStore, in_order, replace_page, usable, verify, write

_OWN = "Stored pages are yours: the copyright of their sites stays with them, so do not pass them on."


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "page", help="record, import, make and list stored pages for the experiment pageload"
    )
    words = parser.add_subparsers(dest="page", metavar="COMMAND", required=True)
    record = words.add_parser(
        "record",
        help="load pages in a headless Chromium and store every answer",
        description=f"Load pages in a headless Chromium (TANDEM_CHROMIUM, or in PATH) and store every answer. {_OWN}",
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
    imported = words.add_parser(
        "import",
        help="store the page of a HAR file that a browser exported with content",
        description=f"Store the page of a HTTP archive (HAR 1.2) with content, as browsers' developer tools export it. {_OWN}",
    )
    imported.add_argument("har", type=Path, metavar="FILE.har")
    build = words.add_parser(
        "build",
        help="make a synthetic page by seed",
        description="Make a page by seed: a document, style sheets, scripts and pictures of several origins.",
    )
    build.add_argument("--seed", type=int, default=1, help="(1)")
    build.add_argument("--objects", type=int, default=70, metavar="N", help="in all, 1 to 1000 (70)")
    build.add_argument("--bytes", type=int, default=2_000_000, metavar="N", help="of all bodies, about (2000000)")
    build.add_argument("--origins", type=int, default=6, metavar="N", help="1 to 50 (6)")
    build.add_argument("--scheme", choices=("http", "https"), default="https", help="(https)")
    listed = words.add_parser(
        "list", help="the pages there are, each checked", description="The pages there are; bodies are checked."
    )
    listed.add_argument("--json", action="store_true", help="for a machine")
    for word in (record, imported, build, listed):
        add_config(word)
    for word in (record, imported, build):
        word.add_argument("--name", metavar="NAME", help="the page's name; synthetic, or after its host")
    record.set_defaults(func=_record)
    imported.set_defaults(func=_import)
    build.set_defaults(func=_build)
    listed.set_defaults(func=_list)


@with_plain_ends
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
            found = recording.record(program, url, args.timeout, sandbox=False if args.no_sandbox else None)
            made = {"by": "record", "browser": found.browser}
            page, name = _put(folder, args.name or _name_of(url), in_order(found.objects), made, found.times_ms)
        except NoBrowserError as error:
            raise EnvironmentLacks(str(error)) from error
        except (recording.RecordError, PageError) as error:
            print(f"tandem-server: {error}", file=sys.stderr)
            worst = 1
            continue
        _say_failed(found.failed)
        print(_line(name, page))
    return worst


@with_plain_ends
def _import(args: Namespace) -> int:
    folder = load(args.config).content.folder
    try:
        found = har.read(args.har.read_bytes())
        made = {"by": "import", "browser": found.browser}
        name = args.name or _name_of(found.objects[0].url)
        page, name = _put(folder, name, in_order(found.objects), made, found.times_ms)
    except FileNotFoundError as error:
        raise ConfigError(f"{args.har}: no such file") from error
    except (har.HarError, PageError) as error:
        raise ConfigError(f"{args.har}: {error}") from error
    _say_failed(found.left_out)
    print(_line(name, page))
    return 0


@with_plain_ends
def _build(args: Namespace) -> int:
    for option, value, least, most in (
        ("objects", args.objects, 1, 1000),
        ("bytes", args.bytes, 1000, 200_000_000),
        ("origins", args.origins, 1, 50),
        ("seed", args.seed, 0, 10**9),
    ):
        if not least <= value <= most:
            raise ConfigError(f"--{option} {value}; hint: {least} to {most}")
    folder = load(args.config).content.folder
    objects = synthetic.make(args.seed, args.objects, args.bytes, args.origins, args.scheme)
    page, name = _put(folder, args.name or "synthetic-page", objects, {"by": "build", "seed": args.seed}, {})
    print(_line(name, page))
    return 0


@with_plain_ends
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
    if not NAME.match(name):
        raise ConfigError(f"name {name!r}; hint: --name of letters, digits, '.', '_', '-', at most 64")
    target = folder / name
    if target.exists() and not (target / "page.json").is_file():
        raise ConfigError(f"{target} is there and is no page; hint: another --name")
    making = folder / f".{name}.{os.getpid()}.tmp"
    making.mkdir(parents=True)
    try:
        stamped = {**made, "utc": datetime.now(UTC).isoformat(timespec="seconds")}
        page = write(making, objects, stamped, times_ms)
        replace_page(target, making)
    finally:
        shutil.rmtree(making, ignore_errors=True)
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


def _say_failed(lines: Sequence[str]) -> None:
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
