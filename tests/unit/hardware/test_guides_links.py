"""Links and pictures of everything in hardware/ lead somewhere, and each guide is in the list."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HARDWARE = ROOT / "hardware"
PAGES = sorted(HARDWARE.rglob("*.md"))
LINKS = [
    (page.relative_to(HARDWARE).as_posix(), target)
    for page in PAGES
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    if not target.startswith(("http:", "https:"))
]


def _anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def test_there_are_links() -> None:
    assert len(LINKS) > 20


@pytest.mark.parametrize(("page", "target"), LINKS)
def test_a_link_leads_somewhere(page: str, target: str) -> None:
    name, _, anchor = target.partition("#")
    path = ((HARDWARE / page).parent / name).resolve() if name else HARDWARE / page
    assert path.exists(), f"{page}: {target}"
    if anchor:
        assert anchor in _anchors(path), f"{page}: {target}"


def test_each_guide_is_in_the_list() -> None:
    listed = (HARDWARE / "guides" / "README.md").read_text(encoding="utf-8")
    assert all(f"({path.name})" in listed for path in (HARDWARE / "guides").glob("*.md") if path.name != "README.md")


def test_the_guides_are_named_where_kits_are_handed_out() -> None:
    assert "../hardware/guides/commuter.md" in (ROOT / "ansible" / "README.md").read_text(encoding="utf-8")
    assert "../hardware/guides/lab-book.md" in (ROOT / "docs" / "silent-kit.md").read_text(encoding="utf-8")
