"""Tests of a real probe with real modems: what is asked for on the command line, and the report at the end."""

import json
import time
from pathlib import Path

import pytest
from probe import Account, Place, PlacesError, places

from tandem.app.config import Config, ConfigError, load


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hardware", "a real probe with real modems")
    group.addoption("--config", type=Path, help="the collector's configuration: names slots, paths and the server")
    named = "a modem that discovery does not find, or the bench's; several times for several modems"
    group.addoption("--port", action="append", default=[], metavar="NAME=DEVICE", help=named)
    group.addoption("--sys", type=Path, default=Path("/sys"), metavar="FOLDER", help="where sysfs is; default: /sys")
    group.addoption("--polls", type=int, default=30, metavar="N", help="polls of the cadence test; default: 30")
    group.addoption("--unplug", action="store_true", help="asks you to unplug each modem and to plug it in again")
    group.addoption(
        "--patience", type=float, default=120.0, metavar="S", help="how long it waits for you; default: 120"
    )
    file = Path("hardware-report.json")
    where = f"where the report goes, beside what is printed; default: {file}"
    group.addoption("--report", type=Path, default=file, metavar="FILE", help=where)


@pytest.fixture(scope="session")
def config(request: pytest.FixtureRequest) -> Config | None:
    return request.config.stash[WANTED]


@pytest.fixture(scope="session")
def account(request: pytest.FixtureRequest) -> Account:
    return request.config.stash[ACCOUNT]


ACCOUNT = pytest.StashKey[Account]()
WANTED = pytest.StashKey[Config | None]()
PLACES = pytest.StashKey[list[Place]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ACCOUNT] = Account()
    file: Path | None = config.getoption("--config")
    try:
        config.stash[WANTED] = None if file is None else load(file)
        config.stash[PLACES] = places(config.getoption("--port"), config.getoption("--sys"), config.stash[WANTED])
    except (PlacesError, ConfigError) as error:
        raise pytest.UsageError(str(error)) from error


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "place" in metafunc.fixturenames:
        found = metafunc.config.stash[PLACES]
        metafunc.parametrize("place", found or [None], ids=lambda p: p.name if isinstance(p, Place) else "none")
    if "path" in metafunc.fixturenames:
        wanted = metafunc.config.stash[WANTED]
        paths = list(wanted.paths) if wanted is not None else []
        metafunc.parametrize("path", paths or [None], ids=lambda p: p.name if p is not None else "none")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    account = config.stash[ACCOUNT]
    outcomes = {
        report.nodeid.partition("::")[2]: [kind, *([str(report.longrepr[2])] if kind == "skipped" else [])]
        for kind in ("passed", "failed", "skipped")
        for report in terminalreporter.getreports(kind)
    }
    file: Path = config.getoption("--report")
    told = {"format": "tandem-hardware/1", "date": time.strftime("%Y-%m-%d", time.gmtime())}
    told |= {**account.as_json(), "tests": outcomes}
    spare = file.with_name(f"{file.name}.tmp")
    spare.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    spare.replace(file)
    terminalreporter.section("the probe's report")
    for line in account.lines():
        terminalreporter.write_line(line)
    attach = "attach it to a new driver; identities are removed, look it through all the same"
    terminalreporter.write_line(f"{file}: {attach}")
