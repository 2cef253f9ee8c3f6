"""What cloud-init itself makes of trixie's boot partition: data source, schema, users, and the start of firstrun.sh.

The program is the distribution's, unpacked (kit's ``cloud_init``); trixie has cloud-init 25, bookworm's is older.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tandem_image import first_start
from tandem_image.settings import Settings

SETTINGS = Settings("kit-01", "tandem-admin", ("ssh-ed25519 AAAA anna@laptop",))

# The image's own /etc/cloud/cloud.cfg.d/99_raspberry-pi.cfg: NoCloud, seeded from the boot partition.
_ASK = """
import json, sys
from cloudinit import distros, helpers, util
from cloudinit.distros import ug_util
from cloudinit.sources import DataSourceNoCloud
seed, scratch = sys.argv[1:]
config = {"datasource_list": ["NoCloud", "None"], "datasource": {"NoCloud": {"seedfrom": "file://" + seed + "/"}}}
paths = helpers.Paths({"cloud_dir": scratch, "run_dir": scratch})
distro = distros.fetch("debian")("debian", {"default_user": {"name": "pi"}}, paths)
source = DataSourceNoCloud.DataSourceNoCloud(config, distro, paths)
found = source.get_data()
raw = source.get_userdata_raw().decode()
# Merged as cloud-init does: what the image's own configuration says of users comes after.
merged = util.mergemanydict([util.load_yaml(raw), {"users": [{"name": "pi"}]}])
users, _ = ug_util.normalize_users_groups(merged, distro)
print(json.dumps({"found": found, "user_data": raw, "users": sorted(users), "bootcmd": merged["bootcmd"]}))
"""


@pytest.fixture(scope="module")
def programs() -> Path:
    folder = Path(os.environ.get("TANDEM_CLOUD_INIT") or "build/cloud-init").resolve()
    if not (folder / "usr/lib/python3/dist-packages/cloudinit").is_dir():
        pytest.skip("no unpacked cloud-init: ./kit test --all unpacks it")
    tried = _python(folder, "-c", "import cloudinit.cmd.main")
    if tried.returncode != 0:
        pytest.skip(f"this machine's Python does not start the unpacked cloud-init: {tried.stderr.splitlines()[-1]}")
    return folder


@pytest.fixture
def seed(tmp_path) -> Path:
    folder = tmp_path / "seed"
    folder.mkdir()
    (folder / "user-data").write_text(first_start.user_data(SETTINGS))
    (folder / "meta-data").write_text("dsmode: local\ninstance_id: rpios-image\n")
    return folder


def _python(programs: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    libraries = {"PYTHONPATH": str(programs / "usr/lib/python3/dist-packages"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        ["/usr/bin/python3", *arguments], capture_output=True, text=True, check=False, env={**os.environ, **libraries}
    )


def test_cloud_init_finds_the_start_and_knows_no_other_user(programs, seed, tmp_path):
    asked = _python(programs, "-c", _ASK, str(seed), str(tmp_path / "cloud"))
    assert asked.returncode == 0, asked.stderr
    told = json.loads(asked.stdout.splitlines()[-1])
    assert told["found"] is True
    assert told["user_data"] == (seed / "user-data").read_text()
    assert told["users"] == ["tandem-admin"]
    ((shell, option, line),) = told["bootcmd"]
    assert (shell, option, "/boot/firmware/firstrun.sh" in line) == ("sh", "-c", True)


@pytest.mark.parametrize(("script", "restarts"), [(None, False), ("exit 1", False), ("exit 0", True)])
def test_the_machine_starts_again_when_the_first_start_is_done_and_not_else(tmp_path, monkeypatch, script, restarts):
    """The line itself, with the script's place changed; systemctl and sleep note what they are asked."""
    for name in ("systemctl", "sleep"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{tmp_path}/asked\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    if script is not None:
        (tmp_path / "firstrun.sh").write_text(f"{script}\n")
    told = json.loads(first_start.user_data(SETTINGS).partition("\n")[2])
    ((shell, option, line),) = told["bootcmd"]
    subprocess.run([shell, option, line.replace("/boot/firmware", str(tmp_path))], check=False)
    asked = (tmp_path / "asked").read_text() if (tmp_path / "asked").exists() else ""
    assert ("reboot.target" in asked) is restarts
