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


@pytest.fixture(autouse=True, scope="session")
def _ansibles_settings():
    """The repository's, as kit sets them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANSIBLE_CONFIG", str(Path(__file__).parents[3] / "ansible/ansible.cfg"))
        patch.delenv("ANSIBLE_VAULT_PASSWORD_FILE", raising=False)
        yield


@pytest.fixture(scope="session")
def lay_out(operator_key):
    """Lays out a fleet with one kit and no secrets in a folder, the kit's invitation beside it; returns the fleet's own folder."""

    def laid(folder: Path) -> Path:
        variables = {
            "tandem_server_name": "server.example",
            "tandem_ca_file": "{{ inventory_dir }}/ca.pem",
            "tandem_operator_keys": [operator_key],
            "tandem_wifi": {"country": "DE", "ssid": 'x y; "z – Ω', "password": "correct horse"},
        }
        kit = {
            "tandem_paths": [{"name": "a", "apn": "internet.example", "user": "web", "password": "p;w", "pin": "1234"}]
        }
        files = {
            "hosts.yml": {"all": {"children": {"probes": {"hosts": {"kit-01": None}}, "servers": {"hosts": {}}}}},
            "group_vars/all.yml": variables,
            "host_vars/kit-01.yml": kit,
            "ca.pem": "-----BEGIN CERTIFICATE-----\n",
        }
        for name, content in files.items():
            file = folder / "fleet" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content if isinstance(content, str) else json.dumps(content))
        (folder / "kit-01.invite").write_text(json.dumps({"probe": "kit-01", "code": CODE}))
        return folder / "fleet"

    return laid


@pytest.fixture
def fleet(tmp_path, lay_out):
    return lay_out(tmp_path)
