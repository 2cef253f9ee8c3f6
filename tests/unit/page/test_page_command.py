"""``tandem-server page`` as a person types it."""

import json
from pathlib import Path

import pytest
from test_page_har import whole

from tandem_server.cli.main import main
from tandem_server.content.page import recording


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "server.toml"
    file.write_text("[listen]\n[store]\n")
    return file


def said(capsys, *args):
    status = main(["page", *map(str, args)])
    out, err = capsys.readouterr()
    return status, out, err


def test_built_pages_are_listed(config, capsys):
    assert said(capsys, "build", "--config", config, "--objects", 5, "--bytes", 20000)[0] == 0
    assert said(capsys, "build", "--config", config, "--name", "plain", "--scheme", "http", "--objects", 1)[0] == 0
    status, out, _ = said(capsys, "list", "--config", config, "--json")
    rows = json.loads(out)
    assert status == 0
    assert [(row["name"], row["objects"], row["wrong"]) for row in rows] == [
        ("plain", 1, []),
        ("synthetic-page", 5, []),
    ]
    status, out, _ = said(capsys, "list", "--config", config)
    assert out.splitlines()[1].startswith("synthetic-page: https://www.page-1.test/: 5 objects of ")


def test_a_damaged_page_is_listed_as_such(config, capsys):
    said(capsys, "build", "--config", config, "--objects", 2)
    for body in (config.parent / "content/synthetic-page/bodies").iterdir():
        body.write_bytes(b"")
    status, out, _ = said(capsys, "list", "--config", config)
    assert status == 1
    assert "make the page anew" in out


def test_an_archive_is_imported_under_its_host(config, capsys, tmp_path):
    file = tmp_path / "a.har"
    file.write_text(json.dumps(whole()))
    status, out, err = said(capsys, "import", file, "--config", config)
    assert status == 0
    assert out.startswith("a.test: https://a.test/: 5 objects of 3 origins")
    assert err.count("left out: ") == 4


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["build", "--name", "../x"], "mend: --name"),
        (["build", "--objects", "0"], "--objects 0; mend: 1 to 1000"),
        (["build", "--bytes", "1"], "--bytes 1; mend"),
        (["import", "nowhere.har"], "nowhere.har: no such file"),
        (["import", "server.toml"], "server.toml: no JSON"),
        (["record"], "name a URL, or --list FILE"),
        (["record", "ftp://x.test/"], "no http or https URL"),
        (["record", "--list", "nowhere"], "nowhere: No such file"),
        (["record", "--list", "names"], "names:2"),
        (["build", "--name", "film"], "is no page"),
    ],
)
def test_what_is_wrong_is_one_line(config, capsys, monkeypatch, args, why):
    monkeypatch.chdir(config.parent)
    Path("names").write_text("1,example.org\n2,exa mple\n")
    Path("content/film").mkdir(parents=True)  # a DASH presentation is not overwritten
    status, _, err = said(capsys, *args, "--config", config)
    assert status == 2
    assert why in err
    assert len(err.splitlines()) == 1


def test_without_a_browser_recording_says_what_to_install(config, capsys, monkeypatch):
    monkeypatch.setenv("TANDEM_CHROMIUM", "/nowhere/chromium")
    status, _, err = said(capsys, "record", "http://a.test/", "--config", config)
    assert status == 3
    assert "chromium-headless-shell" in err


@pytest.mark.parametrize(
    ("named", "url", "answered_by", "refused"),
    [
        ("http://a.test/", "http://127.0.0.1:8086/query", None, True),
        ("http://a.test/", "http://[::ffff:127.0.0.1]/", None, True),
        ("http://a.test/", "http://localhost/", None, True),
        ("http://a.test/", "http://169.254.169.254/latest", None, True),
        ("http://a.test/", "http://1.1.1.1/", None, False),
        ("http://a.test/", "http://a.test/", "10.0.0.1", True),  # what its name was resolved to has changed
        ("http://a.test/", "http://a.test/", "[2606:4700::1111]", False),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/x", "127.0.0.1", False),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8086/x", None, True),
        ("http://a.test/", "data:text/plain,x", None, False),
    ],
)
def test_a_page_leads_to_public_addresses_and_where_it_was_named(monkeypatch, named, url, answered_by, refused):
    monkeypatch.setattr(recording, "getproxies", dict)
    assert (recording._Public(named).fault(url, answered_by) is not None) == refused
