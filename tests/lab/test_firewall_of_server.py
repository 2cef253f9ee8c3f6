"""The role firewall's rules in a real nftables: the database's port for backups, which asks nobody who they are, answers two accounts."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import jinja2
import pytest
import yaml

ROLES = Path(__file__).parents[2] / "ansible/roles"
DATABASE_UID = 991
pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("nft") is None, reason="needs root and nftables"),
]


@pytest.fixture
def rules():
    """In force in this network namespace, with the roles' own defaults."""
    environment = jinja2.Environment(trim_blocks=True, undefined=jinja2.StrictUndefined)  # noqa: S701  (no page)
    shared = yaml.safe_load((ROLES / "tandem/defaults/main.yml").read_text())
    measured = [shared["tandem_server_ports"][name] for name in ("measurement", "measurement_tls")]
    own = {"firewall_measured": measured, "firewall_open": [443], "firewall_people": "", "firewall_ssh_port": 22}
    template = environment.from_string((ROLES / "firewall/templates/firewall.nft.j2").read_text())
    text = template.render(shared | own, firewall_ssh_from=[], firewall_database=DATABASE_UID)
    subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)
    yield shared["tandem_database_backup_port"]
    subprocess.run(["nft", "delete", "table", "inet", "tandem"], check=True)


def comes_in(uid, port, address="127.0.0.1"):
    """Whether a process of ``uid`` may connect to ``port`` on this machine."""
    pid = os.fork()
    if pid == 0:
        os.setuid(uid)
        with socket.socket() as mine:
            mine.settimeout(10)
            os._exit(mine.connect_ex((address, port)))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.parametrize(("uid", "let_in"), [(0, True), (DATABASE_UID, True), (DATABASE_UID + 1, False), (1000, False)])
def test_only_root_and_the_database_reach_its_port_for_backups(rules, uid, let_in):
    with socket.create_server(("127.0.0.1", rules)), socket.create_server(("127.0.0.1", 0)) as other:
        assert comes_in(uid, rules) == let_in
        assert comes_in(uid, other.getsockname()[1])


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize(("uid", "let_in"), [(0, True), (1000, False)])
def test_only_root_reads_a_cloud_s_user_data(uid, let_in):
    metadata = "169.254.169.254"
    subprocess.run(["ip", "address", "replace", f"{metadata}/32", "dev", "lo"], check=True)
    with socket.create_server((metadata, 0)) as server:
        assert comes_in(uid, server.getsockname()[1], metadata) == let_in
