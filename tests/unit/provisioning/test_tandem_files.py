"""Several files are brought in one step, as each by itself would be: whole, with their rights, not in a check, and no second time."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ANSIBLE = Path(__file__).resolve().parents[3] / "ansible"
PROGRAM = Path(sys.executable).with_name("ansible-playbook")
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="pip install -r requirements/provision.txt")


@pytest.fixture
def play(tmp_path):
    """Runs tasks by their names, those that fail too: what each told. ``src`` alone brings files of ``tmp_path/files`` into ``there``."""
    (tmp_path / "files").mkdir()

    def run(**tasks):
        given = {"dest": str(tmp_path / "there"), "owner": os.geteuid(), "group": os.getegid(), "mode": "0644"}
        steps = []
        for name, told in tasks.items():
            step = {"tandem_files": {**given, "src": told.pop("src")}, **told} if "src" in told else told
            steps.append({"name": name, "register": name, "ignore_errors": True, **step})
        said = "{{ {" + ", ".join(f"'{name}': {name}" for name in tasks) + "} | to_json }}"
        tell = {
            "name": "Tell",
            "ansible.builtin.copy": {"content": said, "dest": str(tmp_path / "told"), "mode": "0600"},
        }
        whole = {"name": "Any", "hosts": "localhost", "connection": "local", "gather_facts": False}
        (tmp_path / "play.yml").write_text(yaml.safe_dump([{**whole, "tasks": [*steps, tell]}], sort_keys=False))
        env = {"ANSIBLE_HOME": str(tmp_path / "home"), "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg")}
        words = ["-i", "localhost,", "-e", f"ansible_python_interpreter={sys.executable}", tmp_path / "play.yml"]
        done = subprocess.run([PROGRAM, *words], env=os.environ | env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads((tmp_path / "told").read_text())

    return run


def test_what_is_brought_and_what_cannot_be(tmp_path, play):
    files, there = tmp_path / "files", tmp_path / "there"
    (files / "other").mkdir()
    (files / "other/a.txt").write_text("b")
    (files / "a.txt").write_text("ä\n", encoding="utf-8")
    (files / "b.json").write_text('{"not": "a mapping"}\n')
    both = {"src": ["a.txt", "b.json"]}
    told = play(
        nowhere=dict(both),
        made={"ansible.builtin.file": {"path": str(there), "state": "directory", "mode": "0755"}},
        twice={"src": ["a.txt", "other/a.txt"]},
        absent={"src": ["none.txt"]},
        looked=dict(both, check_mode=True, diff=True),
        nothing={"ansible.builtin.command": f"ls {there}"},
        brought=dict(both),
    )
    for name, said in (
        ("nowhere", "is not a folder; mend"),
        ("twice", "two files are called a.txt"),
        ("absent", "none.txt"),
    ):
        assert (told[name]["failed"], said in told[name]["msg"]) == (True, True), told[name]
    assert (told["looked"]["changed"], told["nothing"]["stdout"], told["brought"]["changed"]) == (True, "", True)
    assert "ä" in str(told["looked"]["diff"])
    for name in both["src"]:
        assert (there / name).read_bytes() == (files / name).read_bytes()
        assert (there / name).stat().st_mode & 0o777 == 0o644


def test_no_second_time_unless_something_is_to_be_mended(tmp_path, capsys):
    from ansible.module_utils.testing import patch_module_args

    spec = importlib.util.spec_from_file_location("tandem_files", ANSIBLE / "plugins/modules/tandem_files.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    given = {"files": {"a.txt": "a", "b.txt": "b"}, "dest": str(tmp_path), "mode": "0644"}
    given |= {"owner": str(os.geteuid()), "group": str(os.getegid()), "_ansible_remote_tmp": str(tmp_path / "tmp")}

    def changed(**more):
        with patch_module_args({**given, **more}), pytest.raises(SystemExit):
            module.main()
        return json.loads(capsys.readouterr().out)["changed"]

    assert [changed(), changed()] == [True, False]
    (tmp_path / "a.txt").chmod(0o600)
    (tmp_path / "b.txt").write_text("other")
    assert [changed(_ansible_check_mode=True), changed(), changed()] == [True, True, False]
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "b.txt").read_text() == "b"
