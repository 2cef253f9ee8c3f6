"""MkDocs' hook of mkdocs.yml: the field guide's tables are filled in from the sources when the site is built."""

from __future__ import annotations

from tandem_hardware.pages import with_blocks


def on_page_markdown(markdown: str, *, page: object, **_: object) -> str:
    """The page with its tables. SourceError."""
    return with_blocks(str(page), markdown)
