"""What is used is pinned, what is installed is what is pinned, and its licence is known."""

import configparser
import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
LISTS = {file.stem: file.read_text() for file in (REPOSITORY / "requirements").glob("*.txt")}
PIN = r"([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)(?: ; ([^\\\n]+?))? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)(?:    #.*\n)*"
"""An entry of a list: name, version, for which systems, hashes."""


def canonical(name: str) -> str:
    """As package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def versions(name: str) -> dict[str, set[str]]:
    """What a list holds with those that it names."""
    found: dict[str, set[str]] = {}
    for package, version, _, _ in re.findall(PIN, LISTS[name]):
        found.setdefault(canonical(package), set()).add(version)
    for other in re.findall(r"(?m)^-r (.*)\.txt$", LISTS[name]):
        for package, these in versions(other).items():
            assert found.setdefault(package, these) == these, f"{package} has two versions"
    return found


@pytest.mark.parametrize("name", sorted(LISTS))
def test_a_list_holds_nothing_but_pins_with_hashes_and_other_lists(name):
    assert re.fullmatch(rf"(?:-r [a-z]+\.txt\n)*(?:{PIN})+", LISTS[name])
    entries = [(canonical(package), marker) for package, _, marker, _ in re.findall(PIN, LISTS[name])]
    names = [package for package, _ in entries]
    assert [one for one in entries if names.count(one[0]) > 1 and not one[1]] == []


@pytest.mark.parametrize("name", sorted(LISTS))
def test_a_list_holds_what_its_group_names(name):
    named = {
        canonical(one)
        for one in re.findall(
            r"(?m)^([A-Za-z0-9][A-Za-z0-9._-]*)", (REPOSITORY / f"requirements/{name}.in").read_text()
        )
    }
    assert named - versions(name).keys() == set()
    held = re.findall(r"(?m)^-r (.*)\.(?:in|txt)$", (REPOSITORY / f"requirements/{name}.in").read_text())
    assert {package for one in held if one in LISTS for package in versions(one)} <= versions(name).keys()


def test_this_environment_is_what_the_lists_say():
    manifests = (*REPOSITORY.glob("*/pyproject.toml"), *REPOSITORY.glob("firmware/*/pyproject.toml"))
    ours = {canonical(tomllib.loads(file.read_text())["project"]["name"]) for file in manifests}
    installed = {canonical(one.metadata["Name"]): one.version for one in metadata.distributions()}
    listed = versions("dev")
    outside = {name for name in installed if name not in listed} - ours - {"pip"}
    assert outside == set(), "in no list; hint: requirements/*.in, or pip uninstall"
    assert {name: one for name, one in installed.items() if one not in listed.get(name, {one})} == {}


def test_the_licence_of_what_is_installed_is_known():
    done = subprocess.run(["pip-licenses"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("crate", ["firmware/bench/link", "server/trace-core"])
def test_the_crates_have_exact_versions(crate):
    wanted = tomllib.loads((REPOSITORY / crate / "Cargo.toml").read_text()).get("dependencies", {})
    exact = [one if isinstance(one, str) else one["version"] for one in wanted.values()]
    assert [one for one in exact if not re.fullmatch(r"=[0-9.]+", one)] == []


def test_what_the_server_requires_it_uses_and_whose_inside_it_uses_stays_as_it_is():
    wanted = tomllib.loads((REPOSITORY / "server/pyproject.toml").read_text())["project"]["dependencies"]
    names = [re.match(r"[\w-]+", one)[0] for one in wanted]
    every = "".join(file.read_text() for file in (REPOSITORY / "server/src").rglob("*.py"))
    unused = [n for n in names if n != "tandem-probe" and not re.search(rf"(?m)^\s*(from|import) {n}\b", every)]
    assert unused == ["uvloop"]
    (uvicorn,) = (one for one in wanted if one.startswith("uvicorn"))
    assert re.fullmatch(r"uvicorn==\d+\.\d+\.\*", uvicorn)


def test_ansible_is_told_of_folders_that_are_there():
    folder = REPOSITORY / "ansible"
    told = configparser.ConfigParser()
    told.read(folder / "ansible.cfg")
    named = ("roles_path", "library", "action_plugins", "module_utils", "filter_plugins")
    assert [key for key in named if key in told["defaults"] and not (folder / told["defaults"][key]).is_dir()] == []
