"""A guide on paper: Markdown → one HTML page that needs nothing beside itself. Pure but for the files that it reads."""

from __future__ import annotations

import base64
import html
import itertools
import re
from collections.abc import Mapping
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tandem_hardware.errors import SourceError
from tandem_hardware.guides import led_table
from tandem_hardware.guides.blanks import filled, titled
from tandem_hardware.places import HARDWARE

FOLDER = HARDWARE / "guides"
NAMES = ("commuter", "consent", "assembly", "lab-book", "regulatory", "bench-unit")
POSITIONS = ("off", "coarse", "full")

_SHEET = Path(__file__).with_name("sheet.css")
_KINDS = {".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg"}
_LED = re.compile(r"<!-- generated: status-led -->\n.*?<!-- end -->", re.DOTALL)
_COMMENT = re.compile(r"<!-- .*? -->\n?", re.DOTALL)
_TABLE_LED = "TABLEOFTHESTATUSLED"


def page(name: str, values: Mapping[str, str], position: str | None = None, size: float = 1.0) -> str:
    """The guide ``name`` as HTML. ``values``: what its blanks are filled with; ``position``: which box of the position's mode is ticked;
    ``size``: of all letters, by the sheet's.
    SourceError: a blank nobody knows, a picture that is not there."""
    path = FOLDER / f"{name}.md"
    text = path.read_text(encoding="utf-8")
    text = _COMMENT.sub("", _LED.sub(f"\n{_TABLE_LED}\n", text))
    if position is not None:
        box = f"☐ **{position}**"
        if text.count(box) != 1:
            raise SourceError(f"{path.name}: no box for position {position!r} to tick; mend: {box}")
        text = text.replace(box, f"☑ **{position}**")
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse(text)
    for token in tokens:
        for child in token.children or []:
            _settle(child, path)
    body = reader.renderer.render(tokens, reader.options, {})
    body = body.replace(f"<p>{_TABLE_LED}</p>", led_table.printed())
    body = filled(re.sub(r"<li>(?=\s*(?:<p>)?[☐☑])", '<li class="box">', body), values)
    if name == "commuter":
        body = _columns(body)
    title = next((t.content for before, t in itertools.pairwise(tokens) if before.tag == "h1"), name)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(titled(title, values))}</title>'
        f'<style>{_SHEET.read_text(encoding="utf-8")}</style></head>\n<body class="{name}" style="zoom:{size:g}">\n{body}</body></html>\n'
    )


def _settle(token: Token, path: Path) -> None:
    """Pictures are put in; what leads to another file of the repository leads nowhere on paper: its text stays, the link goes."""
    if token.type == "image":
        picture = (path.parent / str(token.attrs["src"])).resolve()
        if not picture.is_file():
            raise SourceError(f"{path.name}: no picture {token.attrs['src']}; mend: ./kit hardware")
        coded = base64.b64encode(picture.read_bytes()).decode("ascii")
        token.attrs["src"] = f"data:{_KINDS[picture.suffix]};base64,{coded}"
    elif token.type == "link_open" and not re.match(r"https?:|#", str(token.attrs["href"])):
        del token.attrs["href"]


def _columns(body: str) -> str:
    """All between the title and the table of the LED in two columns; each heading stays with its text."""
    head, end, rest = body.partition("</h1>")
    flowing, rule, below = rest.partition("<h2>What its light says")
    parts = re.split(r"(?=<h2>)", flowing)
    inner = parts[0] + "".join(f"<section>{part}</section>" for part in parts[1:])
    return f'{head}{end}<div class="columns">{inner}</div>{rule}{below}'
