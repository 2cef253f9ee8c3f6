"""A release is tried, and kept or not: the program of the role ``collector`` and the unit that goes back, with a systemctl and collectors
of the test. On a booted system: tests/system/test_release_booted.py; with power cuts: tests/system/test_provisioned_machine.py."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.program_module import module_of

FILES = Path(__file__).parents[3] / "ansible/roles/collector/files"
SYSTEMCTL = """#!/bin/sh
cd {home}
echo "$*" >>asked
case $* in
    *restart*) echo @$(date +%s) >started ;;
    show*)
        printf 'ActiveState=active\\nMainPID=%s\\nNeedDaemonReload=no\\nDropInPaths=\\n' "$(readlink current)"
        echo ExecMainStartTimestamp=$(cat started 2>/dev/null) ;;
esac
"""
COLLECTOR = """#!/bin/sh
here=$(readlink -f "$(dirname "$0")/..")
case $* in
    *--check) ! grep refused "$3" >/dev/null || {{ echo "tandem: $3:1: refused" >&2; exit 2; }} ;;
    *idle*) test ! -e {home}/measuring ;;
    status*) test -e "$here/status.json" && echo $(($(cat {home}/made) + 1)) >{home}/made &&
        sed "s/MADE/$(test -e "$here/hung" && echo 1 || cat {home}/made)/" "$here/status.json" ;;
esac
"""


def loaded():
    """The program, with a clock that goes on when it waits."""
    program, now_s = module_of(FILES / "tandem-release"), [0.0]
    program.time = SimpleNamespace(monotonic=lambda: now_s[0], sleep=lambda s: now_s.append(now_s.pop() + s))
    return program


def status(paths="ab", usable="ab", reached=True):
    """Of a collector with two paths."""
    return {
        "paths": {name: {"state": "up" if name in paths else "down"} for name in "ab"},
        "modem_health": {name: {"state": "usable" if name in usable else "lost"} for name in "ab"},
        "spool": {"path": "a" if reached else None, "made": "MADE"},
    }


class Kit:
    """A probe's releases in a folder."""

    def __init__(self, home):
        self.home = home
        (home / "made").write_text("0")
        programs = home / "programs-of-test"
        programs.mkdir()
        (programs / "systemctl").write_text(SYSTEMCTL.format(home=home))
        (programs / "systemctl").chmod(0o755)
        self.env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}

    def release(self, name, says, config='[[path]]\nname = "a"\n[[path]]\nname = "b"\n'):
        folder = self.home / "releases" / name
        (folder / "bin").mkdir(parents=True)
        (folder / "bin/tandem").write_text(COLLECTOR.format(home=self.home))
        (folder / "bin/tandem").chmod(0o755)
        (folder / "config.toml").write_text(config)
        if says is not None:
            (folder / "status.json").write_text(json.dumps(says).replace('"MADE"', "MADE"))
        return folder

    def limits(self, name):
        return ["--wait", "0", "--healthy-within", "3", "--steady", "1", str(self.home / "releases" / name)]

    def tries_as_a_process(self, name):
        argv = [sys.executable, FILES / "tandem-release", *self.limits(name)]
        return subprocess.run(argv, env=self.env, capture_output=True, text=True, check=False)

    def tries(self, name):
        program, said, told, status = loaded(), io.StringIO(), io.StringIO(), 0
        with pytest.MonkeyPatch.context() as patched, redirect_stdout(said), redirect_stderr(told):
            patched.setenv("PATH", self.env["PATH"])
            patched.setattr(sys, "argv", ["tandem-release", *self.limits(name)])
            try:
                program.main()
            except SystemExit as end:  # as the interpreter takes it
                status = 1 if isinstance(end.code, str) else end.code
                print(end.code, file=sys.stderr)
        return SimpleNamespace(returncode=status, stdout=said.getvalue(), stderr=told.getvalue())

    def goes_back(self):
        """The unit, as systemd runs it."""
        unit = (FILES / "tandem-release-back.service").read_text().replace("/opt/tandem", str(self.home))
        (condition,) = re.findall(r"(?m)^ConditionPathIsSymbolicLink=(.*)$", unit)
        if Path(condition).is_symlink():
            for command in re.findall(r"(?m)^ExecStart=(.*)$", unit):
                argv = shlex.split(command)
                subprocess.run([Path(argv[0]).name, *argv[1:]], env=self.env, check=True)

    def seen(self):
        links = {name: self.home / name for name in ("current", "before", "previous")}
        return {name: link.resolve().name for name, link in links.items() if link.is_symlink()}

    def restarts(self):
        return (self.home / "asked").read_text().count("restart tandem.service")


@pytest.fixture
def kit(tmp_path):
    made = Kit(tmp_path)
    made.release("old", status())
    (tmp_path / "current").symlink_to("releases/old")
    return made


def test_a_healthy_release_stays_and_the_same_again_changes_nothing(kit):
    kit.release("new", status())
    done = kit.tries_as_a_process("new")
    assert (done.returncode, done.stdout) == (0, "new runs\n"), done.stderr
    assert kit.seen() == {"current": "new", "previous": "old"}
    assert kit.tries_as_a_process("new").stdout == "unchanged\n"
    assert kit.restarts() == 1


@pytest.mark.parametrize(
    ("says", "lacked"),
    [
        (None, "the collector does not answer"),
        (status(paths="a"), "path b was up before and is not"),
        (status(usable="b"), "the modem of path a was usable before and is not"),
        (status(reached=False), "the server took records before and has taken none since"),
    ],
)
def test_a_release_that_lacks_what_the_one_before_had_is_taken_back(kit, says, lacked):
    kit.release("new", says)
    done = kit.tries("new")
    assert (done.returncode, done.stderr) == (1, f"new did not report healthy: {lacked}\n")
    assert kit.seen() == {"current": "new", "before": "old"}
    kit.goes_back()
    assert kit.seen() == {"current": "old"}
    assert kit.restarts() == 2


def test_a_release_that_answers_and_makes_no_records_is_not_healthy(kit):
    (kit.release("new", status()) / "hung").touch()
    assert kit.tries("new").stderr == "new did not report healthy: it makes no records\n"


def test_what_did_not_work_before_or_is_configured_no_more_is_not_asked(kit):
    kit.release("poor", status(paths="a", usable=""), config='[[path]]\nname = "a"\n')
    kit.release("new", status(paths="", usable="", reached=False))
    (kit.home / "releases/old/status.json").write_text(json.dumps(status(usable="b")).replace('"MADE"', "MADE"))
    assert kit.tries("poor").returncode == 0
    (kit.home / "releases/poor/status.json").unlink()
    assert kit.tries("new").returncode == 0


def test_a_refused_configuration_and_a_measurement_leave_all_as_it_was(kit):
    refused = kit.release("refused", status(), config="refused\n")
    assert kit.tries("refused").stderr == f"tandem: {refused}/config.toml:1: refused\n"
    kit.release("new", status())
    (kit.home / "measuring").touch()
    assert kit.tries("new").stderr.startswith("a measurement is under way; hint: ")
    assert (kit.seen(), kit.restarts()) == ({"current": "old"}, 0)


def test_what_changed_since_its_start_restarts_a_release(kit):
    kit.release("new", status())
    kit.tries("new")
    os.utime(kit.home / "releases/new/config.toml", (2**33, 2**33))
    assert kit.tries("new").stdout == "new runs\n"
    assert (kit.seen(), kit.restarts()) == ({"current": "new", "previous": "old"}, 2)


def test_the_first_release_stays_and_what_it_lacks_is_told(kit):
    (kit.home / "releases/old/config.toml").unlink()  # a program alone
    kit.release("new", None)
    assert kit.tries("new").returncode == 1
    kit.goes_back()
    assert kit.seen() == {"current": "new"}


class PowerCutError(BaseException):
    """The power is gone."""


def test_whenever_the_power_goes_a_boot_finds_the_old_release_or_the_new(kit, monkeypatch):
    """Cut before each single change of the folder."""
    new, program = kit.release("new", status()), loaded()
    monkeypatch.setenv("PATH", kit.env["PATH"])
    monkeypatch.setattr(sys, "argv", ["tandem-release", "--healthy-within", "3", "--steady", "0", str(new)])
    left, ends = [0], []

    def cut(act):
        def acting(*args, **more):
            left[0] -= 1
            if left[0] < 0:
                raise PowerCutError
            return act(*args, **more)

        return acting

    for name in ("symlink_to", "replace", "unlink"):
        monkeypatch.setattr(program.Path, name, cut(getattr(Path, name)))
    for steps in range(20):
        left[0] = 1000
        for name in kit.seen():
            (kit.home / name).unlink()
        (kit.home / "current").symlink_to("releases/old")
        left[0] = steps
        try:
            program.main()
            done = True
        except PowerCutError:
            done = False
        kit.goes_back()
        ends.append(kit.seen())
        if done:
            break
    assert ends[-1] == {"current": "new", "previous": "old"}
    assert ends[:-1] == [{"current": "old"}] * (len(ends) - 1)
    assert len(ends) > 5, "it was cut in the middle, too"
