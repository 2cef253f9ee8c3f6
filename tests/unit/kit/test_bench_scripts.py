"""The scripts of tests/bench run by hand only: all that they import is there, and --help says what they ask and how."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
SCRIPTS = sorted(file.stem for file in BENCH.glob("*.py"))
STARTED_BY_OTHERS = {"collector_account", "gateway_load", "stacks_scene"}
"""Programs that take no options: another script starts them."""


@pytest.fixture(autouse=True)
def _as_started_by_hand(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A script finds those beside it; afterwards their short names are free for other tests' modules."""
    monkeypatch.syspath_prepend(str(BENCH))
    yield
    for name in SCRIPTS:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", SCRIPTS)
def test_imports_are_there_and_help_is_printed(name, monkeypatch, capsys):
    script = importlib.import_module(name)
    assert script.__doc__
    if name in STARTED_BY_OTHERS or not hasattr(script, "main"):
        return
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
    with pytest.raises(SystemExit) as ended:
        script.main()
    printed = capsys.readouterr().out
    assert ended.value.code == 0
    assert script.__doc__.partition("\n")[0] in printed
    assert name.startswith("fuzz_") or "--json" in printed
