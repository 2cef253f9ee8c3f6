"""No test makes a link without a rate: over a bare veth pair a fast machine overruns its own backlog, and the machine is measured."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
FOLDERS = ("lab", "system", "support")
MAKER = "support/rated_links.py"
ALLOWED = {
    "lab/tunnel_ends.py": "echoes of a few bytes through WireGuard: that they arrive, not how fast",
    "system/targets/container_target.py": "cables of a container that is provisioned: packages and ssh, nothing is measured",
}
"""File and why nothing is measured over its links."""
WORDS = re.compile(r"\btype\s+veth\b")


def bare_links(text: str) -> Iterator[int]:
    """Lines that ask for a veth pair: ``type veth`` in a string, or ``veth`` as a word of a command."""
    if "veth" not in text:
        return
    tree = ast.parse(text)
    said = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}  # docstrings
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in said else None
        if isinstance(text, str) and (text == "veth" or WORDS.search(text)):
            yield node.lineno


def test_links_are_made_by_the_one_maker_or_carry_nothing_that_is_measured():
    files = [file for folder in FOLDERS for file in sorted((TESTS / folder).rglob("*.py"))]
    names = {str(file.relative_to(TESTS)): file for file in files}
    excused = {MAKER, *ALLOWED}
    found = [f"{n}:{line}" for n, file in names.items() if n not in excused for line in bare_links(file.read_text())]
    assert not found, f"{', '.join(found)}: a veth pair without a rate; make it by {MAKER}"
