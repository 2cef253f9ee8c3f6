"""tandem-pull with real git and real signatures: only what a pinned key signed is run, and nothing older than what was.

Where the playbook itself does not matter, a shell stands for Ansible, which takes a second to start."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from program_module import module_of

ANSIBLE = Path(__file__).resolve().parents[3] / "ansible"
PROGRAM = ANSIBLE / "roles/pull/files/tandem-pull"
PLAYBOOK = Path(sys.executable).with_name("ansible-playbook")

pytestmark = pytest.mark.skipif(
    not (PLAYBOOK.exists() and shutil.which("git") and shutil.which("ssh-keygen")),
    reason="needs ansible, git and ssh-keygen",
)

tandem_pull = module_of(PROGRAM)


class Fleet:
    """The operator's repository, its releases, and a probe kit-1 that pulls them. ``ran``: what playbooks wrote."""

    def __init__(self, folder):
        self.folder, self.ran, self.bare = folder, folder / "ran", folder / "fleet.git"
        for name in ("release", "stranger"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name], check=True)
        public = (folder / "release.pub").read_text().rsplit(" ", 1)[0]
        (folder / "signers").write_text(f'fleet namespaces="git" {public}\n')
        self.work = folder / "work"
        self.git("init", "-q", "-b", "main", self.work, at=folder)
        self.git("init", "-q", "--bare", self.bare, at=folder)
        self.write("hosts.yml", "probes: {hosts: {kit-1: {}, kit-2: {}}}\n")
        self.write("ansible/ansible.cfg", f"[defaults]\ninterpreter_python = {sys.executable}\n")
        self.shell = folder / "shell-for-ansible"
        self.shell.write_text('for last; do :; done\npull_tag=${last#pull_tag=}\n. "$1"\n')

    def git(self, *arguments, at=None, when=None):
        environment = {
            **os.environ,
            "HOME": str(self.folder),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            **{f"GIT_{who}_{what}": "f@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
            **({"GIT_COMMITTER_DATE": f"{int(when)} +0000"} if when else {}),
        }
        return subprocess.run(
            ["git", *map(str, arguments)],
            cwd=at or self.work,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    def write(self, name, text):
        file = self.work / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def release(self, number, line=None, key="release", when=None, playbook=None, sign=True):
        """Commit a playbook that appends ``line`` to the file ``ran``, tag it, push."""
        line = line or f"release {number}"
        self.write("play.yml", playbook or f"echo '{line}' $pull_tag >>{self.ran}\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", line)
        options = ("-s",) if sign else ("-a",)
        signing = ("-c", "gpg.format=ssh", "-c", f"user.signingKey={self.folder / key}")
        self.git(*signing, "tag", *options, "-m", line, f"fleet-{number}", when=when)
        self.push()

    def push(self):
        self.git("push", "-q", "--force", "--prune", self.bare, "refs/tags/*:refs/tags/*")

    def pull(self, *options, **changed):
        told = {
            "repository": str(self.bare),
            "prefix": "fleet",
            "inventory": "hosts.yml",
            "probe": "kit-1",
            "playbook": "play.yml",
            "after_h": 0,
            "tries": 2,
            "folder": str(self.folder / "probe"),
            "signers": str(self.folder / "signers"),
            "vault_key": str(self.folder / "vault/kit-1.key"),
            "ansible": ["sh", str(self.shell)],
            **changed,
        }
        (self.folder / "pull.json").write_text(json.dumps(told))
        environment = {
            **os.environ,
            "ANSIBLE_LOCAL_TEMP": str(self.folder / "tmp"),
            "ANSIBLE_REMOTE_TEMP": str(self.folder / "tmp"),
            "PATH": f"{self.folder / 'programs'}:{os.environ['PATH']}",
        }
        ended = subprocess.run(
            [sys.executable, PROGRAM, "--config", self.folder / "pull.json", *options],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "Traceback" not in ended.stderr
        self.told = ended.stdout + ended.stderr
        return ended.returncode, (ended.stdout + ended.stderr).strip().splitlines()[-1]

    def lines(self):
        return self.ran.read_text().splitlines() if self.ran.exists() else []


@pytest.fixture
def fleet(tmp_path):
    return Fleet(tmp_path)


def test_a_signed_tag_is_taken_once_and_the_next_one_after_it(fleet):
    fleet.release(1)
    assert fleet.pull() == (0, "tandem-pull: fleet-1 taken"), fleet.told
    assert fleet.pull() == (0, "tandem-pull: fleet-1 is what runs here")
    fleet.release(9)
    fleet.release(10)
    assert fleet.pull() == (0, "tandem-pull: fleet-10 taken")
    assert fleet.lines() == ["release 1 fleet-1", "release 10 fleet-10"]


FORGED = ("stranger", "unsigned", "lightweight", "altered", "renamed")


def forge(fleet, how):
    """A tag fleet-2 that the release key did not make."""
    fleet.release(2, f"forged {how}", key="stranger" if how == "stranger" else "release", sign=how == "stranger")
    if how in ("stranger", "unsigned"):
        return
    evil = fleet.git("rev-parse", "HEAD")
    fleet.git("tag", "-d", "fleet-2")
    if how == "lightweight":
        fleet.git("tag", "fleet-2", evil)
    elif how == "renamed":  # the true tag of release 1 under a higher number: an old release brought back
        fleet.git("update-ref", "refs/tags/fleet-2", fleet.git("rev-parse", "fleet-1"))
    else:  # a true signature over something else
        altered = fleet.git("cat-file", "tag", "fleet-1").replace(fleet.git("rev-parse", "fleet-1^{commit}"), evil)
        (fleet.folder / "altered").write_text(altered.replace("tag fleet-1", "tag fleet-2") + "\n")
        made = fleet.git("hash-object", "-t", "tag", "-w", fleet.folder / "altered")
        fleet.git("update-ref", "refs/tags/fleet-2", made)
    fleet.push()


def test_a_forged_tag_runs_nothing_and_a_true_one_after_it_is_taken(fleet):
    fleet.release(1)
    assert fleet.pull()[0] == 0
    for how in FORGED:
        forge(fleet, how)
        status, said = fleet.pull()
        assert (status, "nothing of it was run" in said) == (1, True), how
        assert fleet.lines() == ["release 1 fleet-1"], how
        assert "echo 'forged" not in (fleet.folder / "probe/tree/play.yml").read_text(), how
        fleet.git("tag", "-d", "fleet-2")
    fleet.release(3, "true")
    assert fleet.pull() == (0, "tandem-pull: fleet-3 taken")


def test_who_can_push_but_not_sign_keeps_no_release_back(fleet):
    """Tags with numbers of their own making above every true one: unsigned ones, and a true one under another name."""
    fleet.release(1)
    assert fleet.pull()[0] == 0
    fleet.release(2)
    fleet.git("tag", "fleet-999999999")
    fleet.git("update-ref", "refs/tags/fleet-999999998", "refs/tags/fleet-1")
    fleet.push()
    status, said = fleet.pull()
    assert (status, "passed over: fleet-999999998 is the signed tag 'fleet-1'" in said) == (0, True), fleet.told
    assert "passed over: fleet-999999999 is not signed" in fleet.told
    status, said = fleet.pull()
    assert (status, "fleet-999999999 is not signed" in said) == (1, True)
    assert fleet.lines() == ["release 1 fleet-1", "release 2 fleet-2"]


def test_an_older_release_is_not_brought_back(fleet):
    fleet.release(1)
    fleet.release(2)
    assert fleet.pull()[0] == 0
    fleet.git("tag", "-d", "fleet-2")
    fleet.push()
    status, said = fleet.pull()
    assert status == 1
    assert "the newest tag is fleet-1, and fleet-2 was taken already: refused" in said
    assert len(fleet.lines()) == 1


def test_all_but_canaries_wait_and_a_bad_release_is_superseded_in_between(fleet):
    fleet.release(1, when=time.time() - 3600)
    assert fleet.pull(after_h=24) == (0, "tandem-pull: fleet-1 is taken in 23.0 h")
    fleet.release(2, when=time.time() - 25 * 3600)
    assert fleet.pull(after_h=24) == (0, "tandem-pull: fleet-2 taken")
    assert fleet.lines() == ["release 2 fleet-2"]


def test_what_fails_is_tried_so_often_and_a_newer_one_mends_it(fleet):
    fleet.release(1, playbook="exit 2\n")
    assert fleet.pull()[0] == 1
    assert fleet.pull() == (1, "tandem-pull: the playbook of fleet-1 ended with 2")
    assert fleet.pull() == (1, "tandem-pull: fleet-1 failed 2 times; mend: a newer tag")
    fleet.release(2)
    assert fleet.pull() == (0, "tandem-pull: fleet-2 taken")


def test_ansible_runs_on_this_probe_alone_and_reads_its_own_secrets_with_its_own_key(fleet):
    for probe, pin in (("kit-1", "4711"), ("kit-2", "4712")):
        put = subprocess.run(
            [sys.executable, ANSIBLE / "fleet-secrets", "set", "-i", fleet.work, probe, "secret_pin_a"],
            input=pin + "\n", env={**os.environ, "TANDEM_VAULT": str(fleet.folder / "vault")}, text=True, check=True,
        )  # fmt: skip
        assert put.returncode == 0
    (fleet.folder / "vault/kit-2.key").unlink()
    playbook = f"""- hosts: probes
  gather_facts: false
  tasks:
    - ansible.builtin.shell: echo '{{{{ inventory_hostname }}}} {{{{ pull_tag }}}} {{{{ secret_pin_a }}}}' >> {fleet.ran}
"""
    fleet.release(1, playbook=playbook)
    assert fleet.pull(ansible=[str(PLAYBOOK)]) == (0, "tandem-pull: fleet-1 taken"), fleet.told
    assert fleet.lines() == ["kit-1 fleet-1 4711"]


def test_without_a_network_or_a_tag_it_says_so(fleet):
    assert fleet.pull(repository=str(fleet.folder / "none"))[0] == 3
    assert fleet.pull() == (1, f"tandem-pull: no tag fleet-NUMBER in {fleet.bare}")


def test_a_configuration_that_cannot_work(fleet):
    for changed in ({"playbook": "../play.yml"}, {"inventory": "/etc/hosts"}, {"after_h": "soon"}, {"further": 1}):
        status, said = fleet.pull(**changed)
        assert (status, "pull.json: " in said) == (2, True), changed


@given(st.text(), st.lists(st.integers(0, 10**9 - 1)))
def test_the_numbers_among_any_refs(noise, numbers):
    refs = noise.replace("fleet", "other") + "\n" + "\n".join(f"refs/tags/fleet-{n}" for n in numbers)
    found = tandem_pull.numbered(refs, "fleet")
    assert [number for number, _ in found] == sorted(numbers, reverse=True)


@given(st.text())
def test_any_tag_object_is_read_or_refused(text):
    try:
        told = tandem_pull.said_by(text)
    except tandem_pull.PullError:
        return
    assert set(told.commit) <= set("0123456789abcdef")


def test_a_line_of_the_message_does_not_pass_for_the_head():
    head = f"object {'a' * 40}\ntype commit\ntag fleet-1\ntagger f <f@example.org> 1790000000 +0000\n\n"
    told = tandem_pull.said_by(head + "tag fleet-99\nobject " + "b" * 40)
    assert (told.name, told.commit, told.signed_s) == ("fleet-1", "a" * 40, 1_790_000_000)


def test_a_read_only_root_is_made_writable_for_a_tag_that_is_good_and_for_no_other(fleet):
    program, calls = fleet.folder / "programs/tandem-root", fleet.folder / "calls"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho $* >>{calls}\n")
    program.chmod(0o755)
    below = ("--below", "/proc")  # a place where something is mounted
    fleet.release(1, "forged", sign=False)
    assert fleet.pull(*below)[0] == 1
    assert not calls.exists()
    fleet.release(2)
    assert fleet.pull(*below) == (0, "tandem-pull: fleet-2 is taken at the next start, whose root is writable")
    assert calls.read_text() == "writable --reboot --for tandem-pull.service\n"
    assert fleet.lines() == []
    for _ in range(5):
        assert fleet.pull(*below)[0] == 0
    assert fleet.pull(*below)[0] == 1, "it never comes to an end"
    assert "not taken in 6 starts" in fleet.told
    assert fleet.pull() == (0, "tandem-pull: fleet-2 taken")
    assert fleet.pull(*below) == (0, "tandem-pull: fleet-2 is what runs here")
