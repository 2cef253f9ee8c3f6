"""What ``./kit`` starts as whom, ``./kit provision`` with which settings of Ansible, and what it refuses: on a copy whose .venv holds
programs that only tell how they were called."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
TELLS = """#!/bin/sh
printf '%s|%s|%s|%s\\n' "${0##*/}" "$*" "$ANSIBLE_CONFIG" "$ANSIBLE_VAULT_PASSWORD_FILE" >>"${0%/*}/called"
[ "${0##*/} $1" != "tandem-fleet check" ] || [ ! -e "$2/broken" ]
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """One without sources, whose .venv is taken as it is: nothing is installed."""
    folder = tmp_path / "tandem"
    (folder / "requirements").mkdir(parents=True)
    shutil.copy(REPOSITORY / "kit", folder)
    for file in (REPOSITORY / "requirements").glob("*.sh"):
        shutil.copy(file, folder / "requirements")
    (folder / "requirements/lock.txt").touch()
    shutil.copytree(REPOSITORY / "ansible/playbooks", folder / "ansible/playbooks")
    programs = folder / ".venv/bin"
    programs.mkdir(parents=True)
    (programs / "pip").write_text(f"#!{programs}/python\n")
    (programs / "python").write_text("#!/bin/sh\n")
    for name in ("tandem-fleet", "ansible-playbook"):
        (programs / name).write_text(TELLS)
    for program in programs.iterdir():
        program.chmod(0o755)
    (tmp_path / "fleet").mkdir()
    (tmp_path / "fleet/vault.key").write_text("a key\n")
    return folder


def kit(checkout: Path, *words: str) -> tuple[int, str, list[str]]:
    """Its exit status, what it said, and which programs it called: name, arguments, Ansible's settings, the fleet's key."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    command = [str(checkout / "kit"), *words]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    called = checkout / ".venv/bin/called"
    return done.returncode, done.stdout + done.stderr, called.read_text().splitlines() if called.exists() else []


@pytest.mark.parametrize("given", [["-i", "../fleet"], ["--inventory=../fleet"], ["-i../fleet"]], ids=" ".join)
def test_the_fleet_is_checked_then_the_playbook_has_its_settings_its_key_and_every_option(checkout, given):
    status, said, called = kit(checkout, "provision", "aws", *given, "-e", "aws_confirm=field")
    assert status == 0, said
    key, settings = checkout.parent / "fleet/vault.key", checkout / "ansible/ansible.cfg"
    arguments = f"{checkout}/ansible/playbooks/aws.yml {' '.join(given)} -e aws_confirm=field"
    assert called == [f"tandem-fleet|check ../fleet|{settings}|{key}", f"ansible-playbook|{arguments}|{settings}|{key}"]


def test_what_cannot_be_played_is_one_line_and_a_fleet_with_something_wrong_is_not_played(checkout):
    for words, line in (
        (["aws"], "kit: which fleet? hint: ./kit provision aws -i DIR"),
        (["aws", "-i", "../none"], "kit: ../none: no fleet is here; hint: ./kit fleet new ../none"),
        (["azure", "-i", "../fleet"], "kit: there is no playbook azure"),
    ):
        status, said, called = kit(checkout, "provision", *words)
        assert (status, line in said.splitlines(), called) == (2, True, []), said
    (checkout.parent / "fleet/broken").touch()
    status, _, called = kit(checkout, "provision", "aws", "-i", "../fleet")
    assert (status, [line.partition("|")[0] for line in called]) == (2, ["tandem-fleet"])


def test_alone_it_lists_the_playbooks(checkout):
    status, said, called = kit(checkout, "provision")
    assert status == 0
    listed = {line.split()[0] for line in said.splitlines()[1:]}
    assert listed == {file.stem for file in (REPOSITORY / "ansible/playbooks").glob("*.yml")}
    assert called == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as sudo gives it")
@pytest.mark.parametrize("owner", [1234, 0], ids=["the user's checkout", "root's checkout"])
def test_under_sudo_it_goes_on_as_the_user_whose_checkout_it_is(checkout, tmp_path, monkeypatch, owner):
    (tmp_path / "sudo").write_text('#!/bin/sh\necho "sudo $*"\n')
    (tmp_path / "sudo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SUDO_UID", "1234")
    os.chown(checkout, owner, owner)
    status, said, _ = kit(checkout, "provision", "azure")
    if owner:
        assert (status, said) == (0, f"sudo -H -u #1234 -- {checkout}/kit provision azure\n")
        said = kit(checkout, "run", "tandem-bench", "run", "--wifi")[1]
        assert said == f"sudo -H -u #1234 -- {checkout}/kit run-as-root tandem-bench run --wifi\n"
    else:
        assert "kit: there is no playbook azure" in said


def test_what_the_user_named_reaches_the_bench_through_sudo(tmp_path):
    (tmp_path / "sudo").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "sudo").chmod(0o755)
    raises = re.search(r"^on_the_bench\(\) .*?^}$", (REPOSITORY / "kit").read_text(), re.MULTILINE | re.DOTALL)[0]
    script = f"set -eu; id() {{ echo 1000; }}; has() {{ :; }}\n{raises}\non_the_bench pytest tests/system"
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "TANDEM_KERNEL_V094": "/a folder/bzImage", "TANDEM_LINK": ""}
    done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, check=False)
    said = done.stdout.splitlines()
    assert {"TANDEM_KERNEL_V094=/a folder/bzImage", "TANDEM_LINK="} <= set(said), done.stderr
    assert said[-2:] == ["pytest", "tests/system"]
