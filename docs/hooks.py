"""Hook of the documentation's build (MkDocs): what the code knows better than a page stands in the pages by markers
``<!-- made: NAME -->``; README.md and ARCHITECTURE.md become pages; links may be relative to the repository.
The same code gives the same pages."""

from __future__ import annotations

import argparse
import functools
import inspect
import itertools
import logging
import posixpath
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tandem.app.config_schema import TABLES
from tandem.cli.main import parser as probe_parser
from tandem.schema import manifest, metrics
from tandem_bench.cli.main import parser as bench_parser
from tandem_bench.scenario import load, play, show
from tandem_dashboards.cli import parser as dashboards_parser
from tandem_fleet.cli import parser as fleet_parser
from tandem_image.cli import parser as image_parser
from tandem_server.analysis.radio_packets import COLUMNS
from tandem_server.cli import configuration
from tandem_server.cli.main import parser as server_parser
from tandem_server.endpoint.sessions import Share
from tandem_server.schema import measurements
from tandem_server.schema.rollups import NOT_ROLLED, ROLLUPS

ROOT = Path(__file__).parents[1]
PARSERS = {
    "tandem": probe_parser,
    "tandem-server": server_parser,
    "tandem-bench": bench_parser,
    "tandem-dashboards": dashboards_parser,
    "tandem-image": image_parser,
    "tandem-fleet": fleet_parser,
}
PAGES = {"README.md": "index.md", "ARCHITECTURE.md": "contributing/architecture.md"}
"""Files of the repository that are pages, too."""
COMMUTE = "campaigns/commute.svg"
"""The shipped commute as it is played, drawn here."""
NO_PAGES = ("hooks.py", "notebooks/")

_KINDS = {
    "whole": "whole number", "truth": "true or false", "int": "whole number", "float": "number", "bool": "true or false", "str": "text",
    "Path": "path",
}  # fmt: skip
_MARKER = re.compile(r"^<!-- made: ([a-z_]+)((?: [a-z_.]+)?) -->$", re.M)
_FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$", re.M | re.S)
_LINK = re.compile(r"(?<!\\)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
_log = logging.getLogger("mkdocs.hooks.tandem")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that lie elsewhere, and leaves out what is none."""
    for file in [one for one in files if one.src_uri.startswith(NO_PAGES)]:
        files.remove(file)
    for source, page in PAGES.items():
        if (there := files.get_file_from_path(page)) is not None:
            files.remove(there)
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder, "commute.svg")
        show.draw(play(load("commute")), drawn)
        files.append(File.generated(config, COMMUTE, content=drawn.read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - MkDocs passes them by name
    """The page with what is made of the code in place of its markers, and links that lead within the pages."""
    source = next((own for own, name in PAGES.items() if name == page.file.src_uri), f"docs/{page.file.src_uri}")
    return with_links(made(markdown), source, page.file.src_uri)


def with_links(markdown: str, source: str, page: str) -> str:
    """``source``: the file in the repository from which the links of ``markdown`` start; ``page``: its place below docs/. What is no
    page is named and not linked. A link to a file that is not there is a warning, which ends a strict build."""

    def led(match: re.Match[str]) -> str:
        text, target = match.groups()
        where, _, anchor = target.partition("#")
        if not where or re.match(r"[a-z]+:", where):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), where))
        if not (ROOT / path).exists() and path.removeprefix("docs/") not in (*PAGES.values(), COMMUTE):
            _log.warning("%s: there is no %s", source, path)
        within = PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        if within is None or within.startswith(NO_PAGES):
            return text if text.startswith("`") else f"{text} (`{path}`)"
        return f"[{text}]({posixpath.relpath(within, posixpath.dirname(page) or '.')}{'#' + anchor if anchor else ''})"

    pieces, end = [], 0
    for fence in _FENCE.finditer(markdown):
        pieces += [_LINK.sub(led, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*pieces, _LINK.sub(led, markdown[end:])])


def made(markdown: str) -> str:
    """``markdown`` with each marker's content in its place; KeyError: an unknown marker."""
    return _MARKER.sub(lambda match: "\n".join(MADE[match[1]](*match[2].split())), markdown)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield from ("", f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}")
    for row in rows:
        # What is code stays as it is: there a bar parts no cells, and nothing is a tag.
        cells = (cell if "`" in cell else cell.replace("|", "&#124;").replace("<", "&lt;") for cell in row)
        yield f"| {' | '.join(cells)} |"
    yield ""


def _range(low: float | None, high: float | None, above: bool = False) -> str:
    """Both ends count, unless ``above``: then the lower one does not."""
    if low is None and high is None:
        return ""
    ends = ["" if end is None else f"{end:,.15g}" for end in (low, high)]
    return f"{'above ' if above else ''}{ends[0]} to {ends[1]}" if ends[1] else f"from {ends[0]}"


def _collector(table: str) -> Iterator[str]:
    """The keys of a table of config.toml."""

    def row(key: Any) -> tuple[str, ...]:  # noqa: ANN401 - a key of TABLES
        default = "required" if key.required else "" if key.default is None else f"`{_toml(key.default)}`"
        bounds = ", ".join(f"`{one}`" for one in key.choices) or _range(key.minimum, key.maximum, key.above)
        return f"`{key.name}`", _KINDS.get(key.kind, key.kind), default, bounds, key.hint

    yield from _table(("key", "value", "default", "range", ""), map(row, TABLES[table]))


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, (int, float)):
        return f"{value:_}" if isinstance(value, int) and value >= 100_000 else str(value)
    return f'"{value}"'


def _server() -> Iterator[str]:
    """The sections of server.toml."""
    sections = {one.name: vars(configuration).get(str(one.type)) for one in fields(configuration.ServerConfig)}
    for name, kind in {**sections, "probes.NAME": Share}.items():
        if is_dataclass(kind):
            yield from (f"### [{name}]", "", _prose(kind), *_table(("key", "value", "default", ""), _keys(kind)))


def _keys(kind: Any, before: str = "") -> Iterator[tuple[str, ...]]:  # noqa: ANN401 - a dataclass
    for one in fields(kind):
        inner = vars(inspect.getmodule(kind)).get(str(one.type).removesuffix(" | None"))
        if is_dataclass(inner):
            yield from _keys(inner, f"{before}{one.name}.")
        else:
            yield f"`{before}{one.name}`", _kind(one), _default(one), one.metadata.get("hint", "")


def _kind(field: Field[Any]) -> str:
    said = str(field.type).removesuffix(" | None")
    if choices := re.fullmatch(r"Literal\[(.*)\]", said):
        return ", ".join(f"`{word.strip()}`" for word in choices[1].split(","))
    return _KINDS.get(said, "list of texts")


def _default(field: Field[Any]) -> str:
    value = field.default
    return "" if value is None or value is MISSING else f"`{_toml(str(value) if isinstance(value, Path) else value)}`"


def _prose(thing: object) -> str:
    """A docstring as Markdown."""
    return re.sub(r"``", "`", " ".join((inspect.getdoc(thing) or "").split()))


def _records(whose: str = "probe") -> Iterator[str]:
    """Every measurement with its tags and fields."""
    for one in (metrics.MEASUREMENTS if whose == "probe" else measurements.SERVER_MEASUREMENTS).values():
        yield from (f"### {one.name}", "", one.purpose[:1].upper() + one.purpose[1:] + ".", "")
        yield f"Tags: {', '.join(f'`{tag}`' for tag in one.tags) or 'none of its own'}."
        yield from _fields(one.fields)


def _fields(those: Iterable[metrics.Field]) -> Iterator[str]:
    rows = ((f"`{f.name}`", f.kind, f.unit, _range(f.minimum, f.maximum), f.source) for f in those)
    yield from _table(("field", "type", "unit", "range", ""), rows)


def _common() -> Iterator[str]:
    yield from (f"Tags: {', '.join(f'`{tag}`' for tag in metrics.COMMON_TAGS)}.", *_fields(metrics.COMMON_FIELDS))


def _words() -> Iterator[str]:
    """The lists of words that fields refer to."""
    lists = sorted({**vars(measurements), **vars(metrics)}.items())
    words = ((n, v) for n, v in lists if n[0].isupper() and isinstance(v, tuple) and all(isinstance(w, str) for w in v))
    yield from _table(("list", "words"), ((f"`{n}`", ", ".join(f"`{word}`" for word in v)) for n, v in words))


def _rollups() -> Iterator[str]:
    """What a roll-up holds of each field."""
    rows = []
    for name, held in ((name, held) for name, one in ROLLUPS.items() for held in one.fields):
        more = (*held.also, *(f"{word}_count" for word in held.words))
        rows.append((f"`{name}`", f"`{held.field}`", held.holds, ", ".join(f"`{held.field}_{end}`" for end in more)))
    yield from _table(("measurement", "field", "holds", "besides"), rows)
    yield from _table(("no roll-up", "why"), ((f"`{name}`", why) for name, why in NOT_ROLLED.items()))


def _manifest() -> Iterator[str]:
    """The objects of a run's manifest."""
    for kind in (one for one in vars(manifest).values() if isinstance(one, type) and hasattr(one, "__total__")):
        yield from (f"### {kind.__name__}", "", _prose(kind).replace("See the module. ", ""))
        types = {key: getattr(told, "__forward_arg__", str(told)) for key, told in kind.__annotations__.items()}
        plain = {key: re.sub(r"NotRequired\[(.*)\]", r"\1", said) for key, said in types.items()}
        rows = ((f"`{key}`", f"`{plain[key]}`", "" if plain[key] == types[key] else "optional") for key in types)
        yield from _table(("key", "type", ""), rows)


def _commands() -> Iterator[str]:
    """The help of every command."""
    for name, parser in PARSERS.items():
        yield from (f"## {name}", "", *_help(parser()))


def _help(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action.default, Path) and action.default.is_relative_to(ROOT):
            action.default = action.default.relative_to(ROOT)
    # Of one width, whatever the terminal's; the type of formatters does not say that they take one.
    parser.formatter_class = functools.partial(parser.formatter_class, width=110)  # type: ignore[call-arg]
    yield from ("```text", parser.format_help().rstrip(), "```", "")
    below = [a.choices.values() for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    for one in itertools.chain(*below):
        yield from (f"### {one.prog}", "", *_help(one))


MADE: dict[str, Callable[..., Iterator[str]]] = {
    "collector": _collector,
    "server": _server,
    "records": _records,
    "common": _common,
    "words": _words,
    "rollups": _rollups,
    "manifest": _manifest,
    "radio_packets": lambda: _table(("column", "type", "unit", ""), ((f"`{one[0]}`", *one[1:]) for one in COLUMNS)),
    "commands": _commands,
    "commute": lambda: iter(["![levels, capacities and speed of the commute, with handovers and drops](commute.svg)"]),
}
