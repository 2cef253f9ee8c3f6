"""A published campaign as the public tools read it: mlcroissant, rocrate, roc-validator, in an environment of their own."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pip install -r requirements/lock.txt")

import pyarrow.parquet as pq

from support.sample_export import ARGUMENT, export
from tandem_server.cli.main import main

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(1800)]
REPOSITORY = Path(__file__).parents[2]
LIST = REPOSITORY / "requirements" / "validators.txt"
VALIDATORS = REPOSITORY / "build" / "validators"


@pytest.fixture(scope="module")
def programs() -> Path:
    mark = VALIDATORS / "list.sha256"
    if not mark.is_file() or mark.read_text() != hashlib.sha256(LIST.read_bytes()).hexdigest():
        pytest.skip("no validators in build/validators: ./kit test --all installs them")
    return VALIDATORS / "bin"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("published")
    folder, out = export(base / "campaign"), base / "out"
    made_by = ("--creator", "Doe, Jane <https://orcid.org/0000-0002-1825-0097>", "--title", "A commute")
    told = ("--licence", "CC-BY-4.0", "--home", ARGUMENT, "--key", str(base / "key"), *made_by)
    assert main(["campaign", "publish", str(folder), "--out", str(out), *told]) == 0
    return out


def read(programs: Path, package: Path, cache: Path) -> dict[str, Any]:
    command = [programs / "python", Path(__file__).with_name("package_validators.py"), package, cache]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def faults(programs: Path, crate: Path, cache: Path) -> Counter[str]:
    """What roc-validator finds, recommendations too."""
    report = crate.with_name(f"{crate.name}-report.json")
    how = ["--offline", "--cache-path", cache, "-p", "ro-crate-1.3", "-l", "recommended", "-v", "--no-paging"]
    command = [programs / "rocrate-validator", "-y", "--disable-color", "validate", *how]
    command += ["-f", "json", "-o", report, crate]
    subprocess.run(command, capture_output=True, check=False)
    told = json.loads(report.read_text())
    assert told["statistics"]["total_checks"] > 50
    found = Counter(issue["message"] for issue in told["issues"])
    assert told["passed"] is not bool(found)
    return found


@pytest.fixture(scope="module")
def cache(programs: Path, package: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    place = tmp_path_factory.mktemp("cache") / "contexts"
    return place, read(programs, package, place)


def test_croissant_reads_every_record(package: Path, cache: tuple[Path, dict[str, Any]]) -> None:
    _, told = cache
    assert told["errors"] == told["warnings"] == []
    rows: Counter[str] = Counter()
    for path in package.glob("probe/*/records/*/*.parquet"):
        rows[path.parent.name] += pq.read_metadata(path).num_rows
    assert told["rows"] == dict(rows)
    schema = json.loads((package / "schema.json").read_text())
    assert told["fields"] == {name: len(one["columns"]) for name, one in schema.items()}


def test_the_crate_names_every_file_and_is_valid(
    programs: Path, package: Path, cache: tuple[Path, dict[str, Any]]
) -> None:
    place, told = cache
    there = {path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()}
    assert set(told["entities"]) == there - {"ro-crate-metadata.json", "SHA256SUMS"}
    assert told["title"] == "A commute"
    # What is recommended of people beyond a name and an ORCID is theirs to tell.
    assert [
        one for one in faults(programs, package, place) if "affiliation" not in one and "contactPoint" not in one
    ] == []
