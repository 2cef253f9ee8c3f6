"""The wheels that a playbook installs: the same sources once, other sources never for those."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
SCRIPT = REPOSITORY / "ansible/roles/tandem/files/build-wheels"


def build(out, *folders, machine=""):
    argv = ["sh", SCRIPT, out, sys.executable, machine, *folders]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_the_collector_is_built_and_says_its_release(tmp_path):
    source, out = tmp_path / "collector", tmp_path / "out"
    shutil.copytree(REPOSITORY / "collector", source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    before = sorted(source.rglob("*"))
    release = build(out, source).stdout.strip()
    assert release.startswith("0.1.0+")
    assert sorted(source.rglob("*")) == before, "the tree is left as it is"
    (wheel,) = (out / release).iterdir()
    venv = [sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", tmp_path / "venv"]
    subprocess.run(venv, check=True)
    pip = [sys.executable, "-m", "pip", "--python", tmp_path / "venv/bin/python3", "install"]
    subprocess.run([*pip, "--quiet", "--no-index", "--no-deps", wheel], check=True)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    said = subprocess.run(
        [tmp_path / "venv/bin/tandem", "--version"], env=env, capture_output=True, text=True, check=True
    )
    assert said.stdout == f"tandem {release}\n"


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "small"
    (folder / "src/tandem_server").mkdir(parents=True)
    (folder / "src/tandem_server/__init__.py").write_text("")
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "tandem-small"\nversion = "1.2"\n[tool.setuptools.packages.find]\nwhere = ["src"]\n'
    )
    return folder


def test_the_same_sources_are_built_once_and_give_the_same_bytes(package, tmp_path):
    out = tmp_path / "out"
    release = build(out, package).stdout.strip()
    (wheel,) = (out / release).iterdir()
    first, built_ns = wheel.read_bytes(), wheel.stat().st_mtime_ns
    (package / "src/tandem_server/__pycache__").mkdir()
    (package / "src/tandem_server/__pycache__/x.pyc").write_text("left by Python")
    assert build(out, package).stdout.strip() == release
    assert wheel.stat().st_mtime_ns == built_ns, "not again"
    shutil.rmtree(out)
    assert build(out, package).stdout.strip() == release
    assert wheel.read_bytes() == first
    (package / "src/tandem_server/new.py").write_text("")
    assert build(out, package).stdout.strip() != release


def test_a_build_that_fails_leaves_no_release(package, tmp_path):
    with (package / "pyproject.toml").open("a") as file:
        file.write("[tool.setuptools]\nunknown = 1\n")
    done = build(tmp_path / "out", package)
    assert done.returncode == 3
    assert "hint: ./kit provision" in done.stderr.splitlines()[-1]
    assert list((tmp_path / "out").iterdir()) == []


def test_a_library_goes_along_to_the_same_processor_only(package, tmp_path):
    shutil.copy(REPOSITORY / "server/setup.py", package)
    (package / "src/tandem_server/tandem_trace_core.abi3.so").write_bytes(b"compiled before")
    with (package / "pyproject.toml").open("a") as file:
        file.write('[tool.setuptools.package-data]\n"*" = ["*.abi3.so"]\n')
    here = platform.machine()
    for machine, tag in ((here, f"cp311-abi3-linux_{here}"), ("", "py3-none-any")):
        release = build(tmp_path / "out", package, machine=machine).stdout.strip()
        (wheel,) = (tmp_path / "out" / release).iterdir()
        assert wheel.name == f"tandem_small-{release}-{tag}.whl"
