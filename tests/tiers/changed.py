"""What a change can touch: which tests ``./kit test --changed`` runs, and why each.

A test file is chosen when it, or a module that it imports by whatever way, changed; when it or a helper of it names a changed file that
is no module; when ``tests/tiers.toml`` says so, by ``covers`` (the lab, whose programs are processes, not imports) or by ``touches``.
"""

from __future__ import annotations

import ast
import fnmatch
import subprocess
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath

from tiers.plan import ROOT, Table, TableError, unit_files

SOURCES = (
    *("collector/src", "server/src", "firmware/bench/src", "firmware/image/src", "dashboards/src", "hardware/src"),
    *("ansible/src", "requirements", "tests"),
)


def changed_files(base: str | None) -> tuple[str, list[str]]:
    """The commit compared with, and the paths that differ from it in the work tree, new ones too. TableError: git knows no such BASE."""
    if base is None:
        base = next(
            (name for name in ("origin/HEAD", "origin/main", "main") if _git("rev-parse", "-q", "--verify", name)),
            "HEAD",
        )
        base = (_git("merge-base", "HEAD", base) or ["HEAD"])[0]
    elif not _git("rev-parse", "-q", "--verify", f"{base}^{{commit}}"):
        raise TableError(f"--changed {base}: git knows no such commit; hint: a branch, a tag or HEAD~3")
    differ = _git("diff", "--name-only", "--no-renames", base, "--")
    new = _git("ls-files", "--others", "--exclude-standard")
    return base, sorted({*differ, *new})


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


class Graph:
    """Which Python file imports which, over sources and tests. Tests import their helpers by bare names: from their own folder first, else
    from whichever folder of the tests has the name."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self._modules: dict[str, str] = {}
        self._helpers: dict[str, list[str]] = {}
        self._files: list[str] = []
        for source in SOURCES:
            for file in sorted((root / source).rglob("*.py")):
                path = str(file.relative_to(root))
                self._files.append(path)
                name = ".".join(file.relative_to(root / source).with_suffix("").parts)
                self._modules[name.removesuffix(".__init__")] = path
                if source == "tests":
                    self._helpers.setdefault(file.stem, []).append(path)

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """File → files that it imports, the packages on the way and the conftests above it."""
        return {path: set(self._imported(path)) for path in self._files}

    def _imported(self, path: str) -> Iterator[str]:
        tree = ast.parse((self.root / path).read_bytes(), path)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from self._resolve(alias.name, path)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield from self._resolve(node.module, path)
                for alias in node.names:
                    yield from self._resolve(f"{node.module}.{alias.name}", path)
        if path.startswith("tests/"):
            for folder in PurePosixPath(path).parents:
                if (self.root / folder / "conftest.py").exists():
                    yield str(folder / "conftest.py")

    def _resolve(self, name: str, importer: str) -> Iterator[str]:
        words = name.split(".")
        if words[0] not in self._modules or importer.startswith("tests/"):
            helpers = self._helpers.get(words[0], [])
            beside = [path for path in helpers if PurePosixPath(path).parent == PurePosixPath(importer).parent]
            yield from beside or (helpers if words[0] not in self._modules else [])
        for count in range(1, len(words) + 1):
            if path := self._modules.get(".".join(words[:count])):
                yield path

    def reach(self, path: str) -> dict[str, str]:
        """Every file that ``path`` imports in whatever way → the one through which it was met first."""
        met = {path: ""}
        queue = [path]
        while queue:
            one = queue.pop(0)
            for other in sorted(self.imports.get(one, ())):
                if other not in met:
                    met[other] = one
                    queue.append(other)
        return met


def chosen(changed: Iterable[str], table: Table, root: Path = ROOT) -> dict[str, str]:
    """Test file → why it is chosen, for every tier."""
    changed = set(changed)
    why: dict[str, str] = {}
    tests = [*unit_files(root), *sorted(table.covers)]
    for path in sorted(changed):
        for pattern, names in table.touches.items():
            if fnmatch.fnmatchcase(path, pattern):
                for name in tests:
                    if any(name == f"tests/{one}" or name.startswith(f"tests/{one}/") for one in names):
                        why.setdefault(name, f"{path} (tests/tiers.toml: {pattern})")
    graph = Graph(root)
    # A file that lies in a package and is no module is the package's.
    owned = {path: _owner(path, root) for path in changed if not path.endswith(".py")}
    modules = {path for path in changed if path.endswith(".py")} | {owner for owner in owned.values() if owner}
    names = {
        PurePosixPath(path).name: path for path in owned if PurePosixPath(path).name not in ("README.md", "main.yml")
    }
    for test in tests:
        if test in why:
            continue
        if test in changed:
            why[test] = "changed itself"
            continue
        reach = graph.reach(test)
        if test in table.covers:
            # The programs that it starts are all of the kit: what it imports says nothing, what it is the proof of does.
            reach = {path: by for path, by in reach.items() if path.startswith("tests/")}
        if met := sorted(modules & reach.keys(), key=lambda path: (len(_way(path, reach)), path)):
            way = _way(met[0], reach)
            why[test] = "imports " + met[0] + (f" by {way[0]}" if len(way) > 1 else "")
            continue
        if covered := [
            path for path in sorted(changed) for of in table.covers.get(test, ()) if path.startswith(source(of))
        ]:
            why[test] = f"covers {covered[0]}"
            continue
        for path in (path for path in reach if path.startswith("tests/")):
            text = (root / path).read_text()
            if named := [name for name in names if f'"{name}"' in text or f"/{name}" in text]:
                why[test] = f"{path} names {names[named[0]]}"
                break
    return {test: why[test] for test in tests if test in why}


def _way(path: str, reach: dict[str, str]) -> list[str]:
    way: list[str] = []
    while path := reach[path]:
        way.insert(0, path)
    return way[1:]


def _owner(path: str, root: Path) -> str | None:
    for folder in PurePosixPath(path).parents:
        if str(folder) in SOURCES:
            return None
        if not path.startswith("tests/") and (root / folder / "__init__.py").exists():
            return str(folder / "__init__.py")
    return None


def source(covered: str) -> str:
    """``tandem.mptcp`` → ``collector/src/tandem/mptcp``; a path stays one."""
    if "/" in covered:
        return covered
    package = covered.split(".")[0]
    folder = next(folder for folder in SOURCES if (ROOT / folder / package).is_dir())
    return f"{folder}/{covered.replace('.', '/')}"
