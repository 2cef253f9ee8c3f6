"""Pages of the field guide for a printer: Markdown → one HTML page that needs nothing beside itself → PDF by a headless Chromium."""

from __future__ import annotations

import base64
import html
import mimetypes
import os
import re
import subprocess
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tandem import devtools
from tandem.schema.status_led import STATES
from tandem_hardware.pages import bars, with_blocks
from tandem_hardware.sources import FIELD, HARDWARE, LackError, SourceError

FOLDER = HARDWARE / "guides"
PAGES = {
    "commuter": ("commuter",),
    "consent": ("consent",),
    "assembly": ("build",),
    "lab-book": ("hand-out", "take-back", "log"),
    "regulatory": ("regulatory",),
    "bench-unit": ("bench-unit",),
}
"""A guide's name → the pages of docs/field/ that it prints, in order."""
NAMES = tuple(PAGES)
POSITIONS = ("off", "coarse", "full")
ONE_SIDE, SIZES = ("commuter",), (1.0, 0.95, 0.9, 0.85)
"""Guides that have to fit on one side of A4; of letters, tried in this order until one does: fonts differ, and whom to call takes lines."""


def page(name: str, values: Mapping[str, str], position: str | None = None, size: float = 1.0) -> str:
    """The guide ``name`` as HTML. ``values``: what its blanks are filled with; ``position``: which box of the position's mode is ticked;
    ``size``: of all letters, by the sheet's. SourceError: a blank nobody knows, a picture that is not there."""
    paths = [FIELD / f"{one}.md" for one in PAGES[name]]
    text = "\n".join(with_blocks(path.name, path.read_text(encoding="utf-8")) for path in paths)
    if position is not None:
        if name != "commuter":  # the consent's boxes are the participant's to tick
            raise SourceError(f"{name} has no position to tick by option; hint: leave out --position")
        text = text.replace(f"☐ **{position}**", f"☑ **{position}**")
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse(text)
    for token in tokens:
        for child in token.children or []:
            _settle(child, name)
    body = reader.renderer.render(tokens, reader.options, {})
    for state in STATES:
        shown = f"{bars(state)}</code>"
        body = body.replace(f"<code>{shown}", f'<code class="blinks {state.colour}">{shown}<br>')
    body = _filled(re.sub(r"<li>(?=\s*(?:<p>)?[☐☑])", '<li class="box">', body), values)
    if name == "commuter":
        body = re.sub(r"(<h2>.*?)(?=<h2>)", r"<section>\1</section>", body, flags=re.DOTALL)
        body = re.sub(r"(</h1>)(.*)(<h2>)", r'\1<div class="columns">\2</div>\3', body, flags=re.DOTALL)
    title = re.sub("⟨(.*?)⟩", lambda found: values.get(found[1], ""), text.partition("\n")[0].lstrip("# ")).strip()
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{(FOLDER / 'sheet.css').read_text(encoding='utf-8')}</style></head>\n"
        f'<body class="{name}" style="zoom:{size:g}">\n{body}</body></html>\n'
    )


def _settle(token: Token, name: str) -> None:
    """Pictures are put in; what leads to another file of the repository leads nowhere on paper: its text stays, the link goes."""
    if token.type == "image":
        picture = FIELD / str(token.attrs["src"])
        if not picture.is_file():
            raise SourceError(f"{name}: no picture {token.attrs['src']}; hint: ./kit hardware")
        coded = base64.b64encode(picture.read_bytes()).decode("ascii")
        token.attrs["src"] = f"data:{mimetypes.types_map[picture.suffix]};base64,{coded}"
    elif token.type == "link_open" and not re.match(r"https?:|#", str(token.attrs["href"])):
        del token.attrs["href"]


def _filled(body: str, values: Mapping[str, str]) -> str:
    """With each blank (⟨NAME⟩) filled, or as a line to write on."""
    blanks = tomllib.loads((FOLDER / "blanks.toml").read_text(encoding="utf-8"))

    def put(found: re.Match[str]) -> str:
        if found[1] not in blanks:
            raise SourceError(f"no blank is called {found[1]!r}; hint: a line in guides/blanks.toml")
        if value := values.get(found[1], "").strip():
            return f'<span class="filled">{html.escape(value)}</span>'
        asks, width_mm = blanks[found[1]]
        return f'<span class="blank" style="width:{width_mm}mm"><span class="asks">{html.escape(asks)}</span></span>'

    return re.sub("⟨([^⟨⟩\n]*)⟩", put, body)


def printed(name: str, values: Mapping[str, str], position: str | None) -> bytes:
    """As PDF. SourceError: it does not fit on the one page that it has to; LackError."""
    for size in SIZES if name in ONE_SIDE else SIZES[:1]:
        made = pdf(page(name, values, position, size))
        if len(sheets(made)) == 1 or name not in ONE_SIDE:
            return made
    raise SourceError(f"{name} takes {len(sheets(made))} pages and has to fit on one; hint: a shorter --call")


def sheets(made: bytes) -> list[tuple[float, float]]:
    """Width and height in mm of each page of a PDF as Chromium writes it: no object is compressed into a stream."""
    boxes = re.findall(rb"/Type\s*/Page\b.*?/MediaBox\s*\[\s*0\s+0\s+([\d.]+)\s+([\d.]+)\s*\]", made, re.DOTALL)
    return [(float(width) * 25.4 / 72, float(height) * 25.4 / 72) for width, height in boxes]


def pdf(text: str) -> bytes:
    """HTML that needs nothing beside itself, on paper. LackError: no Chromium here, or it did not print."""
    program = devtools.find()
    if program is None:
        raise LackError(
            "no Chromium here; hint: install chromium-headless-shell, set TANDEM_CHROMIUM, or --format html"
        )
    with tempfile.TemporaryDirectory(prefix="tandem-guide-") as folder:
        source, made = Path(folder, "guide.html"), Path(folder, "guide.pdf")
        source.write_text(text, encoding="utf-8")
        command = [program, "--headless", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage", "--no-first-run",
                   f"--user-data-dir={folder}/profile", "--no-pdf-header-footer", f"--print-to-pdf={made}",
                   *(["--no-sandbox"] if os.geteuid() == 0 else []), source.as_uri()]  # fmt: skip
        try:
            said = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stderr
            return made.read_bytes()
        except subprocess.CalledProcessError as error:
            said = error.stderr
        except (OSError, subprocess.TimeoutExpired) as error:
            said = str(error)
    last = (said.strip().splitlines() or ["it said nothing"])[-1]
    raise LackError(f"{program} did not print: {last}; hint: TANDEM_CHROMIUM names another, or --format html")
