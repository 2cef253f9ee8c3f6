"""Programs of the roles: tandem-wipe on a card of a probe, mounted in another machine (on a probe: tests/system/
test_decommission_playbook.py); what the tunnel's fail-over makes of enrolment's file and of the kernel's routes; the wheels that a playbook
installs: the same sources once, other sources never for those."""

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.program_module import module_of

REPOSITORY = Path(__file__).parents[3]
ROLES = REPOSITORY / "ansible/roles"
GOES = ("etc/tandem/token", "var/lib/tandem/spool/1", "var/lib/tandem/.hidden", "etc/systemd/system/tandem.service")
STAYS = ("etc/ssh/sshd_config", "etc/sudoers.d/tandem", "home/tandem/x")


def wipe(card, *options):
    return subprocess.run(
        ["bash", ROLES / "decommission/files/tandem-wipe", *options, card], capture_output=True, text=True, check=False
    )


TOLD_OF = (
    *("etc/NetworkManager/system-connections/My Wi-Fi.nmconnection", "etc/systemd/system/tandem.service", "etc/tandem"),
    *("etc/wireguard/wg-tandem.conf", "usr/bin/tandem", "var/lib/tandem/.hidden", "var/lib/tandem/spool"),
)


@pytest.fixture
def card(tmp_path):
    for name in (*GOES, *STAYS, "etc/NetworkManager/system-connections/My Wi-Fi.nmconnection"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("[Install]\nWantedBy=multi-user.target\n")
    links = {"usr/bin/tandem": "/opt/tandem/current/bin/tandem", "etc/wireguard/wg-tandem.conf": "../kept"}
    for link, to in links.items():
        (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / link).symlink_to(to)
    (tmp_path / "etc/kept").touch()
    return tmp_path


def test_it_says_what_there_is_and_removes_nothing_unless_told_to(card):
    said = wipe(card)
    assert (said.returncode, sorted(said.stdout.splitlines())) == (0, [f"/{name}" for name in TOLD_OF])
    assert all((card / name).is_file() for name in (*GOES, *STAYS))


def test_a_card_is_wiped_links_but_not_what_they_lead_to(card):
    said = wipe(card, "--yes")
    assert (said.returncode, len(said.stdout.splitlines())) == (0, 7), said.stderr
    assert [name for name in GOES if (card / name).exists()] == []
    assert not (card / "usr/bin/tandem").is_symlink()
    assert all((card / name).is_file() for name in (*STAYS, "etc/kept"))
    again = wipe(card, "--yes")
    assert (again.returncode, again.stdout) == (0, "")


# --- tandem-tunnel


TUNNEL = ROLES / "wireguard_client/files/tandem-tunnel"
ENROLLED = {
    "address": "10.87.0.16/16",
    "server_public_key": "A" * 43 + "=",
    "endpoint": "hub.example:51820",
    "allowed_ips": ["10.87.0.0/16"],
    "keepalive_s": 25,
}


def tunnel(folder, action):
    command = [sys.executable, TUNNEL, "--etc", folder, action]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_wg_quick_is_told_what_enrolment_wrote_and_no_key(tmp_path):
    (tmp_path / "enrolled.json").write_text(json.dumps({"wireguard": ENROLLED}))
    status, conf, _ = tunnel(tmp_path, "conf")
    lines = conf.splitlines()
    assert status == 0
    assert {"Address = 10.87.0.16/16", "AllowedIPs = 10.87.0.0/16", "PersistentKeepalive = 25"} <= set(lines)
    assert [line for line in lines if "Endpoint" in line or line.startswith("PrivateKey")] == []


def test_a_file_that_cannot_be_used_is_one_line(tmp_path):
    for text, action in (
        (None, "conf"),
        ("{", "keep"),
        ('{"wireguard": null}', "conf"),
        ('{"wireguard": {}}', "conf"),
        ("[]", "conf"),
        ("[]", "keep"),
    ):
        if text is not None:
            (tmp_path / "enrolled.json").write_text(text)
        status, _, said = tunnel(tmp_path, action)
        assert (status, len(said.splitlines())) == (1, 1)
        assert f"{tmp_path / 'enrolled.json'}: " in said
        assert "; hint: " in said


def test_the_hub_is_tried_as_the_system_routes_it_then_over_each_route():
    routes = [
        {"gateway": "10.1.0.1", "dev": "wwan0", "metric": 700},
        {"dev": "wg-tandem"},
        {"dev": "ppp0", "metric": 702},
    ]
    shown = json.dumps([{"dst": "default", **route} for route in routes])
    program = module_of(TUNNEL)
    first, second, six = "192.0.2.1:51820", "192.0.2.2:51820", "[2001:db8::1]:51820"
    assert program.ways([first, second, six], shown) == [
        *((first, ""), (second, ""), (six, "")),
        *((first, "via 10.1.0.1 dev wwan0"), (second, "via 10.1.0.1 dev wwan0")),
        *((first, "dev ppp0"), (second, "dev ppp0")),
    ]
    assert program.ways([first], "") == [(first, "")]


# --- build-wheels


def build(out, *folders, machine=""):
    argv = ["sh", ROLES / "tandem/files/build-wheels", out, sys.executable, machine, *folders]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_the_collector_is_built_and_says_its_release(tmp_path):
    source, out = tmp_path / "collector", tmp_path / "out"
    shutil.copytree(REPOSITORY / "collector", source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    before = sorted(source.rglob("*"))
    release = build(out, source).stdout.strip()
    assert release.startswith("0.1.0+")
    assert sorted(source.rglob("*")) == before, "the tree is left as it is"
    (wheel,) = (out / release).iterdir()
    venv = [sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", tmp_path / "venv"]
    subprocess.run(venv, check=True)
    pip = [sys.executable, "-m", "pip", "--python", tmp_path / "venv/bin/python3", "install"]
    subprocess.run([*pip, "--quiet", "--no-index", "--no-deps", wheel], check=True)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [tmp_path / "venv/bin/tandem", "--version"]
    said = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert said.stdout == f"tandem {release}\n"


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "small"
    (folder / "src/tandem_server").mkdir(parents=True)
    (folder / "src/tandem_server/__init__.py").write_text("")
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "tandem-small"\nversion = "1.2"\n[tool.setuptools.packages.find]\nwhere = ["src"]\n'
    )
    return folder


def test_the_same_sources_are_built_once_and_give_the_same_bytes(package, tmp_path):
    out = tmp_path / "out"
    release = build(out, package).stdout.strip()
    (wheel,) = (out / release).iterdir()
    first, built_ns = wheel.read_bytes(), wheel.stat().st_mtime_ns
    (package / "src/tandem_server/__pycache__").mkdir()
    (package / "src/tandem_server/__pycache__/x.pyc").write_text("left by Python")
    assert build(out, package).stdout.strip() == release
    assert wheel.stat().st_mtime_ns == built_ns, "not again"
    shutil.rmtree(out)
    assert build(out, package).stdout.strip() == release
    assert wheel.read_bytes() == first
    (package / "src/tandem_server/new.py").write_text("")
    assert build(out, package).stdout.strip() != release


def test_a_build_that_fails_leaves_no_release(package, tmp_path):
    with (package / "pyproject.toml").open("a") as file:
        file.write("[tool.setuptools]\nunknown = 1\n")
    done = build(tmp_path / "out", package)
    assert done.returncode == 3
    assert "hint: ./kit provision" in done.stderr.splitlines()[-1]
    assert list((tmp_path / "out").iterdir()) == []


def test_a_library_goes_along_to_the_same_processor_only(package, tmp_path):
    shutil.copy(REPOSITORY / "server/setup.py", package)
    (package / "src/tandem_server/tandem_trace_core.abi3.so").write_bytes(b"compiled before")
    with (package / "pyproject.toml").open("a") as file:
        file.write('[tool.setuptools.package-data]\n"*" = ["*.abi3.so"]\n')
    here = platform.machine()
    for machine, tag in ((here, f"cp311-abi3-linux_{here}"), ("", "py3-none-any")):
        release = build(tmp_path / "out", package, machine=machine).stdout.strip()
        (wheel,) = (tmp_path / "out" / release).iterdir()
        assert wheel.name == f"tandem_small-{release}-{tag}.whl"
