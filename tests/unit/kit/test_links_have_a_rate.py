"""No test makes a link without a rate: over a bare veth pair a fast machine overruns its own backlog, and the machine is measured."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]
FOLDERS = ("lab", "system", "support")
MAKER = "support/rated_links.py"
ALLOWED = {
    "support/tunnel_ends.py": "echoes of a few bytes through WireGuard: that they arrive, not how fast",
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


def refused(tests: Path) -> list[str]:
    files = [file for folder in FOLDERS for file in sorted((tests / folder).rglob("*.py"))]
    names = {str(file.relative_to(tests)): file for file in files}
    excused = {MAKER, *ALLOWED}
    return [f"{n}:{line}" for n, file in names.items() if n not in excused for line in bare_links(file.read_text())]


def test_links_are_made_by_the_one_maker_or_carry_nothing_that_is_measured():
    found = refused(TESTS)
    assert not found, f"{', '.join(found)}: a veth pair without a rate; make it by {MAKER}"


def test_every_exception_is_still_one():
    assert [name for name in (MAKER, *ALLOWED) if not list(bare_links((TESTS / name).read_text()))] == []


@pytest.mark.parametrize(
    "bad",
    [
        'space.run("ip link add a0 type veth peer name b0")',
        'space.run(f"ip link add {name}0 type  veth peer name b0 netns {pid}")',
        'run(["ip", "link", "add", "a0", "type", "veth", "peer", "name", "b0"])',
        'BATCH = """address add 10.0.0.1/24 dev a0\nlink add a0 type veth peer name b0\n"""',
    ],
)
def test_a_bare_link_is_refused_by_file_and_line(tmp_path, bad):
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab/test_fast.py").write_text(f'"""May say type veth."""\n# type veth\n{bad}\n')
    assert refused(tmp_path) == ["lab/test_fast.py:3"]
