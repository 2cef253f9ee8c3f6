"""Stock images are made once for all tests, which change none of them."""

import base64
import json
import os
from pathlib import Path

import pytest

from support import stock_images

CODE = "invite_" + "c" * 43


@pytest.fixture(scope="session")
def stocks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, stock_images.StockImage]:
    missing = stock_images.missing_tools()
    if missing:
        pytest.skip(f"these programs make the test's images and are missing here: {', '.join(missing)}")
    base = tmp_path_factory.mktemp("stock")
    made = {}
    for release in ("bookworm", "trixie"):
        (base / release).mkdir()
        made[release] = stock_images.make(base / release, release)
    return made


@pytest.fixture(scope="session")
def operator_key() -> str:
    """A public key, made here, as OpenSSH writes it (type, then type and 32 bytes with their lengths before them)."""
    blob = b"".join(len(part).to_bytes(4, "big") + part for part in (b"ssh-ed25519", os.urandom(32)))
    return f"ssh-ed25519 {base64.b64encode(blob).decode()} operator@laptop"


@pytest.fixture(autouse=True)
def _ansibles_settings(monkeypatch):
    """The repository's, as kit sets them."""
    monkeypatch.setenv("ANSIBLE_CONFIG", str(Path(__file__).parents[3] / "ansible/ansible.cfg"))
    monkeypatch.delenv("ANSIBLE_VAULT_PASSWORD_FILE", raising=False)


@pytest.fixture
def fleet(tmp_path, operator_key):
    """A fleet's folder with one kit and no secrets, and the kit's invitation beside it."""
    variables = {
        "tandem_server_name": "server.example",
        "tandem_ca_file": "{{ inventory_dir }}/ca.pem",
        "tandem_operator_keys": [operator_key],
        "tandem_wifi": {"country": "DE", "ssid": 'x y; "z – Ω', "password": "correct horse"},
    }
    kit = {"tandem_paths": [{"name": "a", "apn": "internet.example", "user": "web", "password": "p;w", "pin": "1234"}]}
    files = {
        "hosts.yml": {"all": {"children": {"probes": {"hosts": {"kit-01": None}}, "servers": {"hosts": {}}}}},
        "group_vars/all.yml": variables,
        "host_vars/kit-01.yml": kit,
        "ca.pem": "-----BEGIN CERTIFICATE-----\n",
    }
    for name, content in files.items():
        file = tmp_path / "fleet" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
    (tmp_path / "kit-01.invite").write_text(json.dumps({"probe": "kit-01", "code": CODE}))
    return tmp_path / "fleet"
