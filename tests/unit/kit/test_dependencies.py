"""What is used is pinned, what is installed is what is pinned, and its licence is known."""

import configparser
import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
LISTS = {name: (REPOSITORY / f"requirements/{name}.txt").read_text() for name in ("lock", "validators")}
GROUPS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["dependency-groups"]
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
PIN = rf"({NAME})==([^\s;\\]+)(?: ; ([^\\\n]+?))? \\\n((?:    --hash=sha256:[0-9a-f]{{64}}(?: \\)?\n)+)((?:    #.*\n)*)"
"""An entry of a list: name, version, for which systems, hashes, why it is there."""
ENTRY = rf"# in: ([a-z ]+)\n((?:{PIN})+)"


def canonical(name: str) -> str:
    """As package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def held(group: str, name: str = "lock") -> dict[str, str]:
    """The packages of a group, each with why it is there."""
    entries = [(one[0].split(), one[1]) for one in re.findall(ENTRY, LISTS[name])]
    pins = [pin for groups, text in entries if group in groups for pin in re.findall(PIN, text)]
    return {canonical(pin[0]): pin[4] for pin in pins}


def named(group: str) -> set[str]:
    """What a group names, and those that it includes."""
    found = set()
    for one in GROUPS[group]:
        found |= named(one["include-group"]) if isinstance(one, dict) else {canonical(re.match(NAME, one)[0])}
    return found


def versions() -> dict[str, set[str]]:
    """Of the lock: a package that has a version for each Python has several."""
    found: dict[str, set[str]] = {}
    for package, version, *_ in re.findall(PIN, LISTS["lock"]):
        found.setdefault(canonical(package), set()).add(version)
    return found


@pytest.mark.parametrize("name", sorted(LISTS))
def test_a_list_holds_nothing_but_pins_with_hashes_below_their_groups_and_each_package_once(name):
    assert re.fullmatch(f"(?:{ENTRY})+", LISTS[name])
    entries = re.findall(ENTRY, LISTS[name])
    names = [{canonical(pin[0]) for pin in re.findall(PIN, text)} for _, text, *_ in entries]
    assert [one for one in names if len(one) != 1 or names.count(one) > 1] == []
    several = [pin for _, text, *_ in entries if len(pins := re.findall(PIN, text)) > 1 for pin in pins]
    assert [pin[0] for pin in several if not pin[2]] == []


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_a_group_holds_what_it_names_and_what_that_needs_and_nothing_else(group):
    packages = held(group, "validators" if group == "validators" else "lock")
    assert named(group) - packages.keys() == set()
    for package, why in packages.items():
        needed_by = {canonical(word) for word in re.findall(NAME, why.replace("# via", "")) if not word.endswith(".in")}
        assert package in named(group) or needed_by & packages.keys(), package


@pytest.mark.parametrize("group", ["runtime", "provision", "dev"])
def test_pip_gets_the_part_of_the_lock_that_is_the_groups(group):
    script = f'here="{REPOSITORY}"; . "$here/requirements/environment.sh"; locked {group}'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert {canonical(pin[0]) for pin in re.findall(PIN, done.stdout)} == held(group).keys()


def test_this_environment_is_what_the_lock_says():
    manifests = (*REPOSITORY.glob("*/pyproject.toml"), *REPOSITORY.glob("firmware/*/pyproject.toml"))
    ours = {canonical(tomllib.loads(file.read_text())["project"]["name"]) for file in manifests}
    installed = {canonical(one.metadata["Name"]): one.version for one in metadata.distributions()}
    listed = versions()
    outside = {name for name in installed if name not in listed} - ours - {"pip"}
    assert outside == set(), "in no list; hint: [dependency-groups] of pyproject.toml, or pip uninstall"
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
