"""What trixie's own programs make of the boot partition: cloud-init's data source and schema, netplan's generator for NetworkManager.

The programs are the distribution's, unpacked (kit's ``cloud_init``); trixie has cloud-init 25 and netplan 1.1, bookworm's are older.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tandem_image import trixie
from tandem_image.release import Stock
from tandem_image.settings import Settings, wifi

# The image's own /etc/cloud/cloud.cfg.d/99_raspberry-pi.cfg: NoCloud, seeded from the boot partition.
_ASK = """
import json, sys
from cloudinit import distros, helpers, version
from cloudinit.sources import DataSourceNoCloud
seed, scratch = sys.argv[1:]
config = {"datasource_list": ["NoCloud", "None"], "datasource": {"NoCloud": {"seedfrom": "file://" + seed + "/"}}}
paths = helpers.Paths({"cloud_dir": scratch, "run_dir": scratch})
source = DataSourceNoCloud.DataSourceNoCloud(config, distros.fetch("debian")("debian", config, paths), paths)
found = source.get_data()
name = source.get_hostname()
print(json.dumps({"version": version.version_string(), "found": found, "instance": source.get_instance_id(),
                  "network": source.network_config, "hostname": getattr(name, "hostname", name),
                  "user_data": source.get_userdata_raw().decode()}))
"""


@pytest.fixture(scope="module")
def programs() -> Path:
    """The folder with cloud-init and netplan."""
    folder = Path(os.environ.get("TANDEM_CLOUD_INIT") or "build/cloud-init").resolve()
    if not (folder / "usr/lib/python3/dist-packages/cloudinit").is_dir():
        pytest.skip("no unpacked cloud-init: ./kit test sets TANDEM_CLOUD_INIT")
    tried = _python(folder, "-c", "import cloudinit.cmd.main")
    if tried.returncode != 0:
        pytest.skip(
            f"this machine's Python does not start the unpacked cloud-init: {tried.stderr.strip().splitlines()[-1]}"
        )
    return folder


@pytest.fixture
def seed(tmp_path, operator_key) -> Path:
    """The files of a boot partition."""
    folder = tmp_path / "seed"
    folder.mkdir()
    settings = Settings("probe-7", "tandem-admin", (operator_key,), wifi("DE", 'x y; "z – Ω 𝄞', "correct horse"))
    stock = Stock("trixie", "arm64", "", "", "", "", None, ())
    for name, content in trixie.boot_files(stock, settings).items():
        (folder / name).write_bytes(content)
    return folder


def _python(programs: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(programs / "usr/lib/python3/dist-packages"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        ["/usr/bin/python3", *arguments], capture_output=True, text=True, check=False, env=environment
    )


def test_cloud_init_finds_its_three_files_there(programs, seed, tmp_path):
    asked = _python(programs, "-c", _ASK, str(seed), str(tmp_path / "cloud"))
    assert asked.returncode == 0, asked.stderr
    told = json.loads(asked.stdout.splitlines()[-1])
    assert told["found"] is True
    assert told["instance"] == json.loads((seed / "meta-data").read_text())["instance-id"]
    assert told["hostname"] == "probe-7"
    assert told["user_data"] == (seed / "user-data").read_text()
    if int(told["version"].split(".")[0]) >= 25:  # bookworm's reads no network-config from there; trixie's does
        assert told["network"] == json.loads((seed / "network-config").read_text())


def test_user_data_is_what_cloud_inits_schema_allows(programs, seed):
    checked = _python(programs, "-m", "cloudinit.cmd.main", "schema", "--config-file", str(seed / "user-data"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "Valid" in checked.stdout + checked.stderr


def test_netplan_makes_a_network_for_networkmanager_of_it(programs, seed, tmp_path):
    generate = next((path for path in programs.glob("**/netplan/generate") if path.is_file()), None)
    if generate is None:
        pytest.skip("the unpacked packages have no netplan generator")
    root = tmp_path / "root"
    (root / "etc/netplan").mkdir(parents=True)
    shutil.copyfile(seed / "network-config", root / "etc/netplan/50-cloud-init.yaml")
    (root / "etc/netplan/50-cloud-init.yaml").chmod(0o600)
    libraries = [
        str(folder) for pattern in ("usr/lib/*-linux-gnu*", "lib/*-linux-gnu*") for folder in programs.glob(pattern)
    ]
    ran = subprocess.run(
        [str(generate), "--root-dir", str(root)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)},
    )
    assert ran.returncode == 0, ran.stderr
    made = [path.read_text().splitlines() for path in (root / "run/NetworkManager/system-connections").iterdir()]
    (wireless,) = [lines for lines in made if "type=wifi" in lines]
    password = json.loads((seed / "network-config").read_text())["network"]["wifis"]["wlan0"]["access-points"][
        'x y; "z – Ω 𝄞'
    ]["password"]
    assert {'ssid=x y; "z – Ω 𝄞', f"psk={password}", "key-mgmt=wpa-psk", "interface-name=wlan0"} <= set(wireless)
    (wired,) = [lines for lines in made if "type=ethernet" in lines]
    assert wired.count("method=auto") == 2
