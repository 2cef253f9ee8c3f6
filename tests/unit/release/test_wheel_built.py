"""The collector's wheel, as Ansible's module builds it, is installed and runs as a release."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("ansible", reason="Ansible is not installed; mend: requirements/provision.txt")

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def module():
    spec = importlib.util.spec_from_file_location(
        "tandem_wheel", REPOSITORY / "ansible/plugins/modules/tandem_wheel.py"
    )
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_built_once_installed_and_run(module, kit, tmp_path):
    source = tmp_path / "collector"
    shutil.copytree(REPOSITORY / "collector", source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    wheel, release, built = module.build(source, tmp_path / "wheels", "")
    first = wheel.read_bytes()
    assert built
    assert release.startswith("0.1.0+")
    assert module.build(source, tmp_path / "wheels", "") == (wheel, release, False)
    wheel.unlink()
    assert module.build(source, tmp_path / "wheels", "")[0].read_bytes() == first, "the same sources, the same bytes"

    assert kit.releases.install(wheel, None) == (release, True)
    said = subprocess.run([kit.home / release / "bin/tandem", "--version"], capture_output=True, text=True, check=True)
    assert said.stdout == f"tandem {release}\n"

    before = module.digest(source)
    (source / "src/tandem/new.py").write_text("")
    assert module.digest(source) != before, "other sources, another release"
    with pytest.raises(module.BuildError, match="PEP 440"):
        module.build(source, tmp_path / "wheels", "field two")


def test_what_cannot_be_built_is_told(module, tmp_path):
    with pytest.raises(module.BuildError, match=r"pyproject\.toml"):
        module.build(tmp_path, tmp_path / "wheels", "")
    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\n\n[project]\nname = "x"\nversion = "1"\nlicense = 3\n'
    )
    with pytest.raises(module.BuildError, match="no wheel could be built"):
        module.build(tmp_path, tmp_path / "wheels", "")
