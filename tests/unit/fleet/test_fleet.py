"""./kit fleet: a fleet made whole, looked at, added to; what is wrong is one line with file, variable and hint."""

import io
import json
import os
import pty
import re
import select
import shutil
import ssl
import stat
import subprocess
import sys
import threading
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest
import yaml

from tandem.devtools import find
from tandem_fleet import access, new
from tandem_fleet.cli import main

ROOT = Path(__file__).resolve().parents[3]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFjJ3nV0JYg6uY0m1FvQ3kY9nQ3n0xJYg6uY0m1FvQ3k anna"
LINE = re.compile(r"[^\n]+: [^\n]+; hint: [^\n]+")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """With one SSH key, and no terminal."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/id_ed25519.pub").write_text(KEY + "\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    return tmp_path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A fleet that is copied, not changed."""
    folder = tmp_path_factory.mktemp("made") / "fleet"
    new.make(folder, new.Wanted("203.0.113.5", "", ["kit-01", "kit-02"], "DE", [KEY]))
    return folder


@pytest.fixture
def fleet(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "fleet"))


def ansible(folder, program, *options):
    """What one of Ansible's programs prints, started as ./kit does."""
    environment = {
        "PATH": os.environ["PATH"],
        "ANSIBLE_CONFIG": str(ROOT / "ansible/ansible.cfg"),
        "ANSIBLE_HOME": str(folder.parent / "ansible"),
        "ANSIBLE_VAULT_PASSWORD_FILE": str(folder / "vault.key"),
        "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
        "ANSIBLE_LOAD_CALLBACK_PLUGINS": "1",
    }
    command = [sys.executable, "-m", "ansible", program, "-i", folder, *options]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def variables(folder, host, *names):
    """The host's variables of these names, decrypted."""
    wanted = ", ".join(f'"{name}": {name}' for name in names)
    said = ansible(folder, "adhoc", host, "-m", "ansible.builtin.debug", "-a", "msg={{ {" + wanted + "} }}")
    return said["plays"][0]["tasks"][0]["hosts"][host]["msg"]


def test_one_command_makes_a_fleet_that_ansible_reads_and_nobody_else(home, capsys):
    folder = home / "fleet"
    where = ["--country", "de", "--timezone", "America/Los_Angeles"]
    assert main(["new", str(folder), "--server", "aws", "--kit", "kit-01", "--kit", "kit-02", *where]) == 0
    assert f"next: ./kit provision aws -i {folder}" in capsys.readouterr().out
    assert main(["check", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder}: good\n"

    listed = ansible(folder, "inventory", "--list")
    assert listed["servers"]["hosts"] == ["server"]
    assert listed["probes"]["hosts"] == ["kit-01", "kit-02"]
    names = (
        "tandem_paths",
        "tandem_wifi",
        "tandem_operator_keys",
        "base_time_zone",
        "certificate_authority_passphrase",
    )
    kit = variables(folder, "kit-01", *names)
    passphrase = kit.pop("certificate_authority_passphrase")
    assert kit.pop("base_time_zone") == "America/Los_Angeles"
    assert kit == {"tandem_paths": "found", "tandem_wifi": {"country": "DE"}, "tandem_operator_keys": [KEY]}
    texts = [file.read_text() for file in folder.rglob("*") if file.is_file()]
    assert not any(passphrase in text for text in texts)
    of_key = openssl("pkey", "-in", folder / "ca.key", "-passin", f"pass:{passphrase}", "-pubout")
    assert openssl("x509", "-in", folder / "ca.pem", "-noout", "-pubkey") == of_key
    for name in ("vault.key", "ca.key"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    git = ["git", "-C", folder]
    subprocess.run([*git, "init", "-q"], check=True)
    ignored = subprocess.run([*git, "check-ignore", "vault.key", "ca.pem"], capture_output=True, text=True)
    assert ignored.stdout == "vault.key\n"


ANSWERS = (
    ("[aws]: ", "203.0.113.5"),
    ("DNS name", ""),
    ("[kit-01]: ", "red blue"),
    ("Country", ""),
    ("Country", "gb"),
    ("Wi-Fi", 'the "workshop"'),
    ("Password of", "eight or more"),
)
"""What a question holds, and what is typed."""


def test_on_a_terminal_it_asks(home):
    ours, theirs = pty.openpty()
    command = [Path(sys.executable).with_name("tandem-fleet"), "new", home / "fleet"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as process:
        os.close(theirs)
        try:
            for question, answer in ANSWERS:
                until(ours, question)
                os.write(ours, answer.encode() + b"\n")
            assert "eight or more" not in until(ours, "next: ./kit provision server")
            assert process.wait(60) == 0
        finally:
            process.kill()
    os.close(ours)
    assert variables(home / "fleet", "blue", "groups['probes']", "tandem_wifi", "tandem_server_name") == {
        "groups['probes']": ["red", "blue"],
        "tandem_wifi": {"country": "GB", "ssid": 'the "workshop"', "password": "eight or more"},
        "tandem_server_name": "203.0.113.5",
    }


def until(terminal, words):
    """What was written, ``words`` in it."""
    said = ""
    while words not in said:
        assert select.select([terminal], [], [], 60)[0], f"{words!r} never came: {said!r}"
        said += os.read(terminal, 4096).decode()
    return said


AWS_DE, IP = ["--server", "aws", "--country", "DE"], ["--server", "203.0.113.5"]
REFUSED = {
    "no server": (["--country", "DE"], "--server: is missing"),
    "no country": (["--server", "aws"], "--country: is missing"),
    "a country that is none": (["--server", "aws", "--country", "UK"], "--country: 'UK'"),
    "a zone that is none": (["--server", "aws", "--country", "US", "--timezone", "PDT"], "--timezone: 'PDT'"),
    "a page's address": (["--server", "https://a.test", "--country", "DE"], "--server: 'https://a.test'"),
    "a kit that is no host name": ([*AWS_DE, "--kit", "Kit 1"], "--kit: 'Kit 1'"),
    "a kit twice": ([*AWS_DE, "--kit", "a", "--kit", "a"], "--kit: the name a"),
    "a private key": ([*AWS_DE, "--ssh-key", "private"], "private: no public SSH key"),
    "a key that is not there": ([*AWS_DE, "--ssh-key", "none"], "none: No such file"),
    "Let's Encrypt for an address": ([*IP, "--country", "DE", "--certificate", "acme"], "acme needs a DNS name"),
}


def test_what_cannot_be_is_refused_in_one_line_and_nothing_is_made(home, capsys, monkeypatch):
    monkeypatch.chdir(home)
    (home / "private").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    found = {}
    for name, (options, words) in REFUSED.items():
        status = main(["new", "fleet", *options])
        line = capsys.readouterr().err.removesuffix("\n")
        if status != 1 or words not in line or not LINE.fullmatch(line):
            found[name] = status, line
    (home / "full").mkdir()
    (home / "full/file").touch()
    assert main(["new", "full", *AWS_DE]) == 1
    assert "is not empty" in capsys.readouterr().err
    (home / ".ssh/id_ed25519.pub").unlink()
    assert main(["new", "fleet", *AWS_DE]) == 1
    assert "ssh-keygen -t ed25519" in capsys.readouterr().err
    assert found == {}
    assert sorted(one.name for one in home.iterdir()) == [".ssh", "full", "private"]


def test_one_that_fails_half_way_leaves_nothing(home, monkeypatch):
    def broken(*_):
        raise OSError(28, "No space left on device", "ca.key")

    monkeypatch.setattr(new, "authority", broken)
    assert main(["new", str(home / "fleet"), *AWS_DE]) == 1
    assert [one.name for one in home.iterdir()] == [".ssh"]


def test_a_kit_more_and_its_pin(fleet, capsys, monkeypatch, tmp_path):
    assert main(["add-kit", "kit-03", "-i", str(fleet)]) == 0
    for pin in ("1234", "0815"):
        (tmp_path / "pin").write_text(f"{pin}\n")
        with (tmp_path / "pin").open() as line:
            monkeypatch.setattr(sys, "stdin", line)
            assert main(["secret", "kit-03", "secret_pin_a", "-i", str(fleet)]) == 0
    assert main(["check", str(fleet)]) == 0
    kit = variables(fleet, "kit-03", "secret_pin_a", "tandem_paths")
    assert kit == {"secret_pin_a": "0815", "tandem_paths": "found"}
    capsys.readouterr()
    assert main(["add-kit", "kit-03", "-i", str(fleet)]) == 1
    assert "kit-03 is taken" in capsys.readouterr().err
    (fleet / "hosts.yml").write_text((fleet / "hosts.yml").read_text() + "    spares: {hosts: {}}\n")
    before = (fleet / "hosts.yml").read_text()
    assert main(["add-kit", "kit-04", "-i", str(fleet)]) == 1
    assert LINE.fullmatch(capsys.readouterr().err.strip())
    assert (fleet / "hosts.yml").read_text() == before


def edit(file, old, text):
    def change(fleet):
        before = (fleet / file).read_text()
        assert old in before
        (fleet / file).write_text(before.replace(old, text))

    return change


ALL, KIT, HOSTS = "group_vars/all.yml", "host_vars/kit-01.yml", "hosts.yml"
FOUND = "tandem_paths: found"
WRONG = {
    "the key is not there": (lambda fleet: (fleet / "vault.key").unlink(), "vault.key: no such file"),
    "others read the key": (lambda fleet: (fleet / "vault.key").chmod(0o644), "vault.key: others can read it"),
    "git would take the key": (lambda fleet: (fleet / ".gitignore").write_text(""), ".gitignore: git would publish"),
    "another key": (
        lambda fleet: (fleet / "vault.key").write_text("0" * 64),
        f"{ALL}: certificate_authority_passphrase was encrypted with another key",
    ),
    "no CA": (lambda fleet: (fleet / "ca.key").unlink(), "ca.key: no such file"),
    "a PIN in clear": (edit(KIT, FOUND, f"{FOUND}\nsecret_pin_a: 1234"), f"{KIT}: secret_pin_a is a secret in clear"),
    "one inside of a list": (
        edit(KIT, FOUND, "tandem_paths: [{name: a, interface: wwan0, pin: '0815'}]"),
        f"{KIT}: pin is a secret in clear",
    ),
    "a private key": (
        lambda fleet: (fleet / "id").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n"),
        "id: a private key or an AWS key",
    ),
    "a variable that is none": (
        edit(KIT, FOUND, "tandem_path: found"),
        f"{KIT}: tandem_path is no variable of Tandem; hint: tandem_paths?",
    ),
    "two modems on one place": (
        edit(KIT, FOUND, "tandem_paths: [{name: a, usb: 1-1.2}, {name: b, usb: 1-1.2}]"),
        f"{KIT}: tandem_paths: two paths have usb 1-1.2",
    ),
    "a kit twice": (edit(HOSTS, "kit-02:", "kit-01:"), f"{HOSTS}:29: kit-01 stands twice"),
    "a kit that is no host name": (edit(HOSTS, "kit-02:", "Kit_2:"), f"{HOSTS}: 'Kit_2' is no host name"),
    "a kit without a file": (lambda fleet: (fleet / KIT).unlink(), f"{KIT}: no such file"),
    "a file without a kit": (lambda fleet: (fleet / "host_vars/kit-9.yml").touch(), "hosts.yml has no host kit-9"),
    "no kit": (edit(HOSTS, "        kit-01:\n        kit-02:\n", "        {}\n"), f"{HOSTS}: no kit"),
    "no server's address": (edit(HOSTS, "ansible_host: 203", "fleet_x: 203"), f"{HOSTS}: server has no ansible_host"),
    "no server's name": (edit(ALL, "tandem_server_name", "fleet_name"), f"{ALL}: tandem_server_name is missing"),
    "no country": (edit(ALL, "country: DE", "ssid: workshop"), f"{ALL}: tandem_wifi: country is missing"),
    "a zone that is none": (
        edit(KIT, FOUND, f"{FOUND}\nbase_time_zone: PDT"),
        f"{KIT}: base_time_zone: PDT is no time zone; hint: an IANA name",
    ),
    "a key that is none": (edit(ALL, "ssh-ed25519 AAAA", "AAAA"), f"{ALL}: tandem_operator_keys: no list"),
    "no YAML": (edit(ALL, "tandem_wifi:", "tandem_wifi: {"), f"{ALL}:"),
}


def test_each_fault_is_one_line_with_its_file(made, tmp_path, capsys):
    wrong = {}
    for number, (name, (change, words)) in enumerate(WRONG.items()):
        fleet = Path(shutil.copytree(made, tmp_path / str(number)))
        change(fleet)
        status = main(["check", str(fleet)])
        lines = capsys.readouterr().err.splitlines()
        if status != 1 or not any(words in line for line in lines) or not all(map(LINE.fullmatch, lines)):
            wrong[name] = status, lines
    assert wrong == {}


def test_faults_as_json_and_a_folder_that_is_no_fleet(tmp_path, capsys):
    assert main(["check", "--json", str(tmp_path)]) == 1
    (fault,) = json.loads(capsys.readouterr().out)["faults"]
    assert (fault["file"], fault["what"]) == (str(tmp_path), "no fleet is here")
    assert fault["hint"].startswith("./kit fleet new DIR")


def test_a_play_with_a_faulty_fleet_ends_before_it_begins(fleet):
    (fleet / KIT).write_text("tandem_paths: found\nsecret_pin_a: 1234\n")
    command = [ROOT / "kit", "provision", "server", "-i", fleet]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert re.fullmatch(rf"{fleet}/{KIT}: secret_pin_a [^\n]*; hint: [^\n]*\n", ran.stderr), ran.stderr


@pytest.mark.skipif(shutil.which("certutil") is None, reason="apt-get install libnss3-tools")
def test_browsers_trust_the_ca(fleet, home, capsys):
    firefox = home / ".mozilla/firefox/abc.default"
    firefox.mkdir(parents=True)
    subprocess.run(["certutil", "-N", "-d", f"sql:{firefox}", "--empty-password"], check=True)
    for _ in range(2):
        assert main(["trust", str(fleet)]) == 0
    assert str(firefox) in capsys.readouterr().out
    for place in (firefox, home / ".pki/nssdb"):
        listed = subprocess.run(["certutil", "-L", "-d", f"sql:{place}"], capture_output=True, text=True, check=True)
        assert re.search(r"^Tandem fleet +C,,", listed.stdout, re.M)


def openssl(*words):
    return subprocess.run(["openssl", *words], capture_output=True, text=True, check=True).stdout


def certificate(fleet, folder):
    """Of 127.0.0.1, by the fleet's CA, for what role `certificate` asks for."""
    tasks = yaml.safe_load((ROOT / "ansible/roles/certificate/tasks/own.yml").read_text())
    (block,) = (task["block"] for task in tasks if "block" in task)
    argv = block[0]["ansible.builtin.command"]["argv"]
    asked = [word for word in argv[argv.index("-addext") :] if "subjectAltName" not in word and word != "-addext"]
    extensions = [part for one in ("subjectAltName=IP:127.0.0.1", *asked) for part in ("-addext", one)]
    key, request, page = (folder / f"{name}.pem" for name in ("key", "request", "page"))
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=127.0.0.1"]
    openssl("req", *curve, "-keyout", key, "-out", request, *extensions)
    days = yaml.safe_load((ROOT / "ansible/roles/certificate/defaults/main.yml").read_text())["certificate_days"]
    passphrase = variables(fleet, "server", "certificate_authority_passphrase")["certificate_authority_passphrase"]
    authority = ["-CA", fleet / "ca.pem", "-CAkey", fleet / "ca.key", "-passin", f"pass:{passphrase}"]
    kept = ["-days", str(days), "-copy_extensions", "copy"]
    openssl("x509", "-req", "-in", request, *authority, *kept, "-out", page)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(page, key)
    return context


@pytest.mark.skipif(shutil.which("certutil") is None or find() is None, reason="no Chromium, or no libnss3-tools")
def test_chromium_opens_the_servers_page_once_the_ca_is_trusted(fleet, home):
    (home / "index.html").write_text("<title>boards</title>")
    served = HTTPServer(("127.0.0.1", 0), lambda *given: SimpleHTTPRequestHandler(*given, directory=str(home)))
    served.socket = certificate(fleet, home).wrap_socket(served.socket, server_side=True)
    thread = threading.Thread(target=served.serve_forever)
    thread.start()

    def opened():
        """What Chromium shows of the page, and what it says."""
        words = [find(), "--headless", "--no-sandbox", "--dump-dom", f"--user-data-dir={home / 'profile'}"]
        address = f"https://127.0.0.1:{served.server_port}/"
        return subprocess.run([*words, address], env=os.environ | {"HOME": str(home)}, capture_output=True, text=True)

    try:
        before = opened()
        assert main(["trust", str(fleet)]) == 0
        after = opened()
    finally:
        served.shutdown()
        thread.join()
        served.server_close()
    assert "boards" not in before.stdout
    assert "ERR_CERT_AUTHORITY_INVALID" in before.stdout + before.stderr
    assert "<title>boards</title>" in after.stdout, after.stderr


def test_the_way_to_a_machine_is_that_of_the_plays(fleet):
    known = f"UserKnownHostsFile={fleet / 'known_hosts'} ~/.ssh/known_hosts"
    asked = access.ssh(fleet, "server", ["tandem-server", "probe", "list"])
    assert asked == ["ssh", "-o", known, "admin@203.0.113.5", "--", "tandem-server", "probe", "list"]
    (fleet / "known_hosts").write_text("kit-01,10.87.0.16 ssh-ed25519 AAAA\n")
    words = access.ssh(fleet, "kit-01", [])
    assert words[-1] == "tandem-admin@10.87.0.16"
    assert "HostKeyAlias=kit-01" in words
    assert words[-2].endswith("admin@203.0.113.5")


def test_a_machine_to_which_there_is_no_way(fleet, capsys):
    for host, said in (("kit-02", "kit-02 has not enrolled"), ("kit-09", "no host kit-09")):
        assert main(["ssh", host, "-i", str(fleet)]) == 1
        line = capsys.readouterr().err.strip()
        assert said in line
        assert LINE.fullmatch(line)
