"""Several files are brought in one step, as each by itself would be: whole, with their rights, not in a check, and no second time."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ANSIBLE = Path(__file__).resolve().parents[3] / "ansible"
PROGRAM = Path(sys.executable).with_name("ansible-playbook")
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="pip install -r requirements/provision.txt")


@pytest.fixture
def brought(tmp_path):
    """Plays the module with ``src``, which lie in ``tmp_path/files``, into ``tmp_path/there``: exit status, changed, what was printed."""
    (tmp_path / "files").mkdir()

    def bring(src, *options, mode="0644"):
        given = {
            "src": src,
            "dest": str(tmp_path / "there"),
            "owner": os.geteuid(),
            "group": os.getegid(),
            "mode": mode,
        }
        play = {"name": "Any", "hosts": "localhost", "connection": "local", "gather_facts": False}
        play["tasks"] = [{"name": "Bring them", "tandem_files": given}]
        (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
        env = {
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_HOME": str(tmp_path / "home"),
            "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"),
        }
        python = ["-e", f"ansible_python_interpreter={sys.executable}"]
        done = subprocess.run(
            [PROGRAM, "-i", "localhost,", *python, tmp_path / "play.yml", *options],
            env=os.environ | env,
            capture_output=True,
            text=True,
            check=False,
        )
        found = re.search(r"changed=(\d+)", done.stdout)
        return done.returncode, int(found[1]), done.stdout + done.stderr

    return bring


def test_brought_once_and_mended(tmp_path, brought):
    (tmp_path / "files/a.txt").write_text("ä\n", encoding="utf-8")
    (tmp_path / "files/b.json").write_text('{"not": "a mapping"}\n')
    (tmp_path / "there").mkdir()
    there = {name: tmp_path / "there" / name for name in ("a.txt", "b.json")}

    exit_status, changed, told = brought(list(there), "--check", "--diff")
    assert (exit_status, changed) == (0, 1), told
    assert "+ä" in told
    assert not any(path.exists() for path in there.values())

    assert brought(list(there))[:2] == (0, 1)
    assert {name: path.read_bytes() for name, path in there.items()} == {
        name: (tmp_path / "files" / name).read_bytes() for name in there
    }
    assert brought(list(there))[:2] == (0, 0)

    there["a.txt"].chmod(0o600)
    there["b.json"].write_text("other")
    assert brought(list(there), "--check")[:2] == (0, 1)
    assert brought(list(there))[:2] == (0, 1)
    assert there["a.txt"].stat().st_mode & 0o777 == 0o644
    assert there["b.json"].read_text() == '{"not": "a mapping"}\n'


def test_what_cannot_be_brought_is_told(tmp_path, brought):
    (tmp_path / "files/a.txt").write_text("a")
    (tmp_path / "files/other").mkdir()
    (tmp_path / "files/other/a.txt").write_text("b")
    assert "is not a folder; mend" in brought(["a.txt"])[2]
    (tmp_path / "there").mkdir()
    assert "two files are called a.txt" in brought(["a.txt", "other/a.txt"])[2]
    exit_status, _, told = brought(["none.txt"])
    assert exit_status == 2
    assert "none.txt" in told
    assert list((tmp_path / "there").iterdir()) == []
