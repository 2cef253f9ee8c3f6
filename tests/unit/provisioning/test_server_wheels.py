"""What the role `tandem_server` builds on the control machine: the same sources once, other sources never for those."""

import json
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "ansible/roles/tandem_server/files/build_wheels.py"


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "small"
    (folder / "src/small").mkdir(parents=True)
    (folder / "src/small/__init__.py").write_text("")
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "tandem-small"\nversion = "1.2"\n[tool.setuptools.packages.find]\nwhere = ["src"]\n'
    )
    (tmp_path / "runtime.txt").write_text("none\n")
    return folder


def built(package, *further):
    words = ["--out", package.parent / "built", "--requirements", package.parent / "runtime.txt", *further, package]
    done = subprocess.run([sys.executable, SCRIPT, *words], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def test_the_same_sources_are_built_once_and_others_are_another_release(package):
    wheels = package.parent / "wheels"
    wheels.mkdir()
    (wheels / "other-1-py3-none-any.whl").write_bytes(b"")
    before = sorted(package.rglob("*"))
    first = built(package, "--with", wheels)
    assert first["built"]
    assert first["release"].startswith("1.2+")
    assert sorted(package.rglob("*")) == before, "the tree is left as it is"
    with tarfile.open(first["archive"]) as archive:
        assert archive.getnames() == [
            "runtime.txt",
            "wheels/tandem_small-1.2-py3-none-any.whl",
            "index/other-1-py3-none-any.whl",
        ]
    (package / "src/small/__pycache__").mkdir()
    (package / "src/small/__pycache__/x.pyc").write_text("left by Python")
    assert built(package, "--with", wheels) == first | {"built": False}
    (package / "src/small/__init__.py").write_text("x = 1\n")
    assert built(package)["release"] != first["release"]


def test_a_build_that_fails_leaves_no_release(package):
    (package / "pyproject.toml").write_text(
        (package / "pyproject.toml").read_text() + "[tool.setuptools]\nunknown = 1\n"
    )
    with pytest.raises(subprocess.CalledProcessError) as told:
        built(package)
    assert told.value.returncode == 3
    assert "mend" in told.value.stderr
    assert list((package.parent / "built").glob("*")) == []


def test_a_library_goes_along_to_the_same_processor_only(package):
    here = platform.machine()
    shutil.copy(Path(__file__).parents[3] / "server/setup.py", package)
    (package / "src/tandem_server").mkdir()
    (package / "src/tandem_server/__init__.py").write_text("")
    (package / "src/tandem_server/tandem_trace_core.abi3.so").write_bytes(b"compiled before")
    with (package / "pyproject.toml").open("a") as file:
        file.write('[tool.setuptools.package-data]\n"*" = ["*.abi3.so"]\n')
    for machine, tag in ((here, f"cp311-abi3-linux_{here}"), ("", "py3-none-any")):
        with tarfile.open(built(package, "--machine", machine)["archive"]) as archive:
            assert archive.getnames() == ["runtime.txt", f"wheels/tandem_small-1.2-{tag}.whl"]
