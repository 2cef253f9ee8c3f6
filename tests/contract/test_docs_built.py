"""The documentation is built as `./kit docs` builds it: without a warning, without a dead link, and with all that the code has."""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tandem.app.config_schema import TABLES
from tandem.cli.main import parser as probe_parser
from tandem.schema.metrics import EVENT_KINDS, MEASUREMENTS
from tandem_bench.cli.main import parser as bench_parser
from tandem_dashboards.cli import parser as dashboards_parser
from tandem_fleet.cli import parser as fleet_parser
from tandem_image.cli import parser as image_parser
from tandem_server.analysis.radio_packets import COLUMNS
from tandem_server.cli import configuration
from tandem_server.cli.main import parser as server_parser
from tandem_server.endpoint.sessions import Share
from tandem_server.schema.measurements import SERVER_MEASUREMENTS

ROOT = Path(__file__).parents[2]
LISTED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
PARSERS = (probe_parser, server_parser, bench_parser, dashboards_parser, image_parser, fleet_parser)
LINK = re.compile(r"(?<!\\)\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^()\s]+)\)")


class Html(HTMLParser):
    """A built page: what it links to, the places within it, its text."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.text = ""
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.places.add(value)
            if (tag, name) in (("a", "href"), ("img", "src"), ("script", "src"), ("link", "href")) and value:
                self.links.append(value)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("docs").resolve() / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(made)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return made


@pytest.fixture(scope="module")
def built(site: Path) -> dict[str, Html]:
    """By the page's place, as ``reference/records``."""
    return {_name(site, file): Html(file) for file in site.rglob("*.html")}


def _name(site: Path, file: Path) -> str:
    return str(file.relative_to(site)).removesuffix(".html").removesuffix("/index")


SHOWN_BY = {"S": "tests/unit/server/http/strangers", "C": "tests/contract", "L": "tests/lab", "U": "tests/unit"}


def test_what_the_page_of_security_is_shown_by_is_there():
    files = (ROOT / "tests").rglob("test_*.py")
    names = [one for file in files for one in re.findall(r"def (test_\w+)", file.read_text())]
    lacks = []
    for word in re.findall(r"`([^`\n]+)`", (ROOT / "docs/reference/security.md").read_text()):
        place, _, rest = word.partition("/")
        if rest and place in (*SHOWN_BY, "tests"):
            lacks += [] if (ROOT / SHOWN_BY.get(place, place) / rest).exists() else [word]
        elif "…" in word:
            parts = [part for part in word.split("…") if part]
            lacks += [] if any(all(part in name for part in parts) for name in names) else [word]
    assert lacks == []


def test_no_link_and_no_anchor_is_dead(site, built):
    dead = []
    pages = {file: built[_name(site, file)].places for file in site.rglob("*.html")}
    for name, html in built.items():
        own = site / name / "index.html" if (site / name / "index.html").exists() else site / f"{name}.html"
        for parts in map(urlsplit, html.links):
            if parts.scheme or parts.netloc or name == "404":
                continue
            target = (own.parent / unquote(parts.path)).resolve() if parts.path else own
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or not (parts.fragment == "" or unquote(parts.fragment) in pages[target]):
                dead.append(f"{name}: {parts.geturl()}")
    assert dead == []


def test_no_link_between_the_texts_of_the_repository_is_dead():
    dead = []
    for name in (one for one in LISTED if one.endswith(".md")):
        text = re.sub(r"^ *```.*?^ *```", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.M | re.S)
        for link in LINK.findall(re.sub(r"`[^`\n]*`", "", text)):
            parts = urlsplit(link)
            target = ((ROOT / name).parent / unquote(parts.path)).resolve()
            built_alone = (ROOT / "docs/contributing/architecture.md").resolve()
            if not (parts.scheme or target.exists() or target == built_alone):
                dead.append(f"{name}: {link}")
    assert dead == []


def test_files_that_contributors_are_sent_to_exist():
    """Code spans that are a file of code, or a folder by two names or more: the end of a path of the repository.

    Words in capitals, * and … stand for any name.
    """
    paths = "".join(f"/{one}\n" for one in LISTED)
    pages = [
        one for one in LISTED if re.fullmatch(r"(ARCHITECTURE|CONTRIBUTING|docs/contributing/.*|\w+/README)\.md", one)
    ]
    spans = re.compile(r"`((?:[\w*…-]+/)*[\w*…-]+\.(?:py|rs|toml|rules|txt|sh)|(?:[\w…-]+/){2,})`")
    sent = [(name, span) for name in pages for span in spans.findall((ROOT / name).read_text(encoding="utf-8"))]
    assert len(sent) > 100
    missing = []
    for name, span in sent:
        pattern = re.sub(r"[A-Z]{2,}|…|\\\*", "[^/\n]*", re.escape(span))
        if not (span.startswith("build/") or re.search(rf"/{pattern}{'' if span.endswith('/') else '$'}", paths, re.M)):
            missing.append(f"{name}: {span}")
    assert missing == []


def test_every_key_of_the_configuration_is_there(built):
    html = built["reference/configuration"]
    rows = set(re.findall(r"[\w.]+", html.text))
    assert {key.name for keys in TABLES.values() for key in keys} <= rows
    assert [table for table in TABLES if f"[{table}]" not in html.text] == []
    kinds = {one.name: vars(configuration).get(str(one.type)) for one in fields(configuration.ServerConfig)}
    sections = {name: kind for name, kind in kinds.items() if hasattr(kind, "__dataclass_fields__")}
    assert len(sections) > 10
    assert [name for name in sections if f"[{name}]" not in html.text] == []
    assert {one.name for kind in (*sections.values(), Share) for one in fields(kind)} - {"s3"} <= rows


def test_every_measurement_with_its_fields_is_there(built):
    html = built["reference/records"]
    words = set(re.findall(r"\w+", html.text))
    for measurement in (*MEASUREMENTS.values(), *SERVER_MEASUREMENTS.values()):
        assert measurement.name.replace("_", "-") in {p.replace("_", "-") for p in html.places}, measurement.name
        assert {*measurement.tags, *(field.name for field in measurement.fields)} <= words, measurement.name
    assert set(EVENT_KINDS) <= words


def test_every_column_of_radio_packets_is_there(built):
    text = built["reference/captures"].text
    assert [name for name, _, _, what in COLUMNS if name not in text or what not in text] == []


def test_every_command_is_there(built):
    text = built["reference/commands"].text
    programs = [prog for made in PARSERS for prog in commands(made())]
    assert len(programs) > 80
    assert [prog for prog in programs if f"usage: {prog}" not in text] == []
    assert str(ROOT) not in text


def commands(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield parser.prog
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from commands(one)
