"""``ansible/`` as a collection, for an Ansible of one's own: built, installed, its playbooks by their full names."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ANSIBLE = Path(__file__).parents[3] / "ansible"
NAMES = {file.stem for file in (ANSIBLE / "playbooks").glob("*.yml")}


def run(folder, program, *words):
    """One of Ansible's programs, which knows this environment's collections and those in FOLDER."""
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(folder)}
    env |= {"ANSIBLE_HOME": str(folder / "home"), "ANSIBLE_COLLECTIONS_PATH": str(folder)}
    command = [sys.executable, "-m", "ansible", program, *words]
    ran = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The collection's folder, of a package that was built of ``ansible/``."""
    folder = tmp_path_factory.mktemp("collection")
    run(folder, "galaxy", "collection", "build", ANSIBLE, "--output-path", folder)
    (package,) = folder.glob("tandem-fleet-*.tar.gz")
    run(folder, "galaxy", "collection", "install", package, "--no-deps", "--offline", "-p", folder)
    return folder / "ansible_collections/tandem/fleet"


def test_it_has_every_role_and_playbook_and_no_program(installed):
    for part in ("roles", "playbooks"):
        of_package, of_source = ({one.name for one in (root / part).iterdir()} for root in (installed, ANSIBLE))
        assert of_package == of_source
    assert {one.name for one in installed.iterdir() if one.is_dir()} == {"roles", "playbooks", "meta"}


def test_each_playbook_finds_its_roles_by_the_collections_name(installed):
    folder = installed.parents[2]
    (folder / "hosts.yml").write_text("{servers: {hosts: {a: }}, probes: {hosts: {b: }}}")
    names = [f"tandem.fleet.{name}" for name in sorted(NAMES)]
    run(folder, "playbook", "-i", folder / "hosts.yml", "--syntax-check", *names)


def test_it_names_the_collections_that_its_tasks_use(installed):
    texts = [file.read_text() for part in ("roles", "playbooks") for file in (installed / part).rglob("*.yml")]
    used = {name for text in texts for name in re.findall(r"^ +((?:amazon|ansible|community)\.\w+)\.\w+:$", text, re.M)}
    named = set(yaml.safe_load((ANSIBLE / "galaxy.yml").read_text())["dependencies"])
    required = yaml.safe_load((ANSIBLE / "requirements.yml").read_text())["collections"]
    assert used - {"ansible.builtin"} == named == {one["name"] for one in required}
