"""What is used is pinned, what is installed is what is pinned, and its licence is known."""

import configparser
import re
import sys
import tomllib
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "requirements"))

import audit

REPOSITORY = audit.HERE.parent


def test_the_lists_are_whole():
    assert audit.faults_of_lists() == []


def test_this_environment_is_what_the_lists_say():
    assert audit.faults_of_installed() == []


def test_each_list_holds_those_that_it_is_made_of():
    lists = {name: {(p.name, p.version) for p in audit.pins((audit.HERE / name).read_text())} for name in audit.LISTS}
    assert lists["runtime.txt"] <= lists["provision.txt"] <= lists["dev.txt"]
    assert lists["runtime.txt"] <= lists["notebook.txt"] <= lists["dev.txt"]
    assert lists["runtime.txt"] <= lists["hardware.txt"] <= lists["dev.txt"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a==1 --hash=sha256:" + "0" * 64, [audit.Pin("a", "1", "", 1)]),
        ("A.b==1 \\\n    --hash=sha256:" + "0" * 64 + "\n    # via c\n", [audit.Pin("a-b", "1", "", 1)]),
        ("a==1 ; python_version < '3.12' \\\n  --hash=md5:00", [audit.Pin("a", "1", "python_version < '3.12'", 0)]),
        ("# nothing\n\n", []),
    ],
)
def test_a_list_is_read(text, found):
    assert audit.pins(text) == found


@pytest.mark.parametrize("text", ["a>=1", "a", "--index-url x", "git+https://x/y", "-e ."])
def test_what_is_not_pinned_is_named(text):
    with pytest.raises(ValueError, match="no pinned package"):
        audit.pins(text)


def test_a_licence_is_told_in_three_ways():
    from email.message import Message

    def told(*headers):
        message = Message()
        for name, value in headers:
            message[name] = value
        return audit.licences(message)

    assert told(("License-Expression", "Apache-2.0 OR (MIT AND 0BSD)")) == ["Apache-2.0", "MIT", "0BSD"]
    assert told(("Classifier", "License :: OSI Approved :: MIT License"), ("License", "x")) == ["MIT License"]
    assert told(("License", "MIT")) == ["MIT"]
    assert told() == []


def test_what_was_not_looked_up_is_no_clean_bill():
    told = (
        '{"dependencies": [{"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "not found"},'
        ' {"name": "c", "version": "2", "vulns": [{"id": "X-1"}]}], "fixes": []}'
    )
    assert audit.advisories(told) == (["c 2: X-1"], ["b: not found"])
    for nothing in ("", "[]", "{}", "Traceback"):
        assert audit.advisories(nothing)[1]


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


def test_the_collections_that_the_roles_use_are_named():
    folder = REPOSITORY / "ansible"
    used = {
        one
        for file in folder.rglob("*.yml")
        for one in re.findall(
            r"(?m)^\s+((?:amazon|ansible|community|containers)\.[a-z]+)\.[a-z0-9_]+:", file.read_text()
        )
    }
    named = re.findall(r"(?m)^  - name: (.*)$", (folder / "requirements.yml").read_text())
    assert sorted(used - {"ansible.builtin"}) == named
