"""A prepared image holds what its release reads, for both releases and architectures; read back by debugfs and mtools, not by its maker."""

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import role_base
import stock_images

from tandem_image.build import make
from tandem_image.errors import ImageError
from tandem_image.settings import GIB, Bearer, Enrolment, Settings, wifi

ALL = [(release, architecture) for release in ("bookworm", "trixie") for architecture in ("armhf", "arm64")]
BOOT, ROOT = stock_images.BOOT_START * 512, stock_images.ROOT_START * 512


class Probe:
    """A prepared image, looked at from outside."""

    def __init__(self, image: Path) -> None:
        self.image = image

    def boot(self, name: str) -> str:
        return self._run("mtype", "-i", f"{self.image}@@{BOOT}", f"::/{name}")

    def boot_has(self, name: str) -> bool:
        return f"::/{name}" in self._run("mdir", "-b", "-i", f"{self.image}@@{BOOT}", "::").splitlines()

    def root(self, path: str) -> str:
        return self._run("debugfs", "-R", f"cat {path}", f"{self.image}?offset={ROOT}")

    def stat(self, path: str) -> tuple[str, int, int] | None:
        told = self._run("debugfs", "-R", f"stat {path}", f"{self.image}?offset={ROOT}")
        mode, owner = re.search(r"Mode: +0?([0-7]+)", told), re.search(r"User: +(\d+) +Group: +(\d+)", told)
        return (mode[1], int(owner[1]), int(owner[2])) if mode and owner else None

    def link(self, path: str) -> str | None:
        found = re.search(
            r'Fast link dest: "(.*)"', self._run("debugfs", "-R", f"stat {path}", f"{self.image}?offset={ROOT}")
        )
        return found[1] if found else None

    def _run(self, program: str, *arguments: str) -> str:
        found = shutil.which(program, path="/usr/sbin:/sbin:/usr/bin:/bin")
        environment = {"MTOOLSRC": "/dev/null", "MTOOLS_SKIP_CHECK": "1"}
        return subprocess.run([found, *arguments], capture_output=True, check=False, text=True, env=environment).stdout


@pytest.fixture(scope="module")
def prepared(stocks, operator_key, tmp_path_factory):
    """One of each, everything asked for."""
    settings = Settings(
        "probe-7",
        "tandem-admin",
        (operator_key,),
        wifi("DE", 'x y; "z', "correct horse"),
        (Bearer("internet.example", "web", "p;w"),),
        Enrolment("https://server.example:8443", "invite_" + "c" * 43, b"-----BEGIN CERTIFICATE-----\n"),
        4 * GIB,
    )
    folder = tmp_path_factory.mktemp("prepared")
    made = {}
    for key in ALL:
        result = make(stocks[key].path, folder / f"{'-'.join(key)}.img", settings)
        assert (result.release, result.architecture) == key
        made[key] = Probe(result.path)
    return made


@pytest.fixture(params=ALL)
def probe(request, prepared):
    """Each of the four."""
    return prepared[request.param]


def test_the_root_does_not_grow_over_the_spool_at_the_first_start(probe):
    words = probe.boot("cmdline.txt")
    assert words.count("\n") == 1
    # What the initramfs of either release looks for: grep -q firstboot, grep -q ' resize'.
    assert "firstboot" not in words
    assert " resize" not in words
    assert "init=" not in words
    assert "rootwait" in words.split()


def test_partitions_go_by_the_new_disk_id_wherever_they_are_named(probe):
    with probe.image.open("rb") as file:
        disk_id = file.read(512)[440:444][::-1].hex()
    assert disk_id != f"{stock_images.DISK_ID:08x}"
    assert f"root=PARTUUID={disk_id}-02" in probe.boot("cmdline.txt").split()
    lines = [line.split() for line in probe.root("/etc/fstab").splitlines() if line.startswith("PARTUUID=")]
    assert [(line[0], line[1]) for line in lines] == [
        (f"PARTUUID={disk_id}-01", "/boot/firmware"),
        (f"PARTUUID={disk_id}-02", "/"),
    ]
    assert probe.root("/etc/tandem/spool.conf").splitlines()[0] == f"partuuid={disk_id}-03"


def test_two_images_of_one_stock_have_different_disk_ids(prepared):
    ids = set()
    for probe in prepared.values():
        with probe.image.open("rb") as file:
            ids.add(file.read(512)[440:444])
    assert len(ids) == len(prepared)


def test_what_both_releases_get(probe):
    assert probe.stat("/etc/sudoers.d/tandem") == ("440", 0, 0)
    # So that a probe's first play changes none of them.
    for place in (
        "/etc/sudoers.d/tandem",
        "/etc/systemd/system.conf.d/90-tandem.conf",
        "/etc/ssh/sshd_config.d/10-tandem.conf",
    ):
        assert probe.root(place) == role_base.written(place, base_operator_user="tandem-admin")
    assert "RuntimeWatchdogSec=15s" in probe.root("/etc/systemd/system.conf.d/90-tandem.conf").splitlines()
    assert probe.boot("config.txt").rstrip().splitlines()[-2:] == [
        "dtparam=watchdog=on",
        "# END Tandem: watchdog (role base)",
    ]
    assert "PasswordAuthentication no" in probe.root("/etc/ssh/sshd_config.d/10-tandem.conf").splitlines()
    assert probe.boot_has("ssh")
    assert probe.stat("/usr/local/sbin/tandem-spool") == ("755", 0, 0)
    assert (
        probe.link("/etc/systemd/system/local-fs.target.wants/tandem-spool.service")
        == "/etc/systemd/system/tandem-spool.service"
    )
    assert re.search(r"^uuid=[0-9a-f-]{36}$", probe.root("/etc/tandem/spool.conf"), re.MULTILINE)
    assert probe.root("/var/lib/systemd/rfkill/platform-fe300000.mmcnr:wlan") == "0\n"
    assert "WirelessEnabled=true" in probe.root("/var/lib/NetworkManager/NetworkManager.state").splitlines()
    assert "cfg80211.ieee80211_regdom=DE" in probe.boot("cmdline.txt").split()


def test_the_invitation_is_roots_alone_and_on_no_partition_that_any_computer_shows(probe):
    assert probe.stat("/etc/tandem/enrol.json") == ("600", 0, 0)
    assert json.loads(probe.root("/etc/tandem/enrol.json")) == {
        "probe": "probe-7",
        "gateway": "https://server.example:8443",
        "code": "invite_" + "c" * 43,
        "ca_file": "/etc/tandem/ca.pem",
    }
    assert (
        probe.link("/etc/systemd/system/multi-user.target.wants/tandem-enrol.service")
        == "/etc/systemd/system/tandem-enrol.service"
    )
    with probe.image.open("rb") as file:
        file.seek(BOOT)
        assert b"c" * 43 not in file.read(stock_images.BOOT_SECTORS * 512)
    assert probe.image.stat().st_mode & 0o777 == 0o600


def test_nowhere_on_the_image_is_the_wifi_password_itself(probe):
    assert b"correct horse" not in probe.image.read_bytes()


def test_modems_are_reached_before_the_playbook_has_run_and_no_pin_is_tried(probe):
    path = "/etc/NetworkManager/system-connections/tandem-mobile-1.nmconnection"
    assert probe.stat(path) == ("600", 0, 0)
    lines = probe.root(path).splitlines()
    assert {"type=gsm", "apn=internet.example", "username=web", "password=p;w", "home-only=true"} <= set(lines)
    assert not any(line.startswith("pin") for line in lines)


@pytest.mark.parametrize("architecture", ["armhf", "arm64"])
def test_bookworm_names_its_first_user_whose_password_is_none_and_whose_keys_are_there(
    prepared, architecture, operator_key
):
    probe = prepared["bookworm", architecture]
    assert probe.boot("userconf.txt") == "tandem-admin:*\n"
    assert probe.root("/home/pi/.ssh/authorized_keys") == f"{operator_key}\n"
    assert probe.stat("/home/pi/.ssh") == ("700", 1000, 1000)
    assert probe.stat("/home/pi/.ssh/authorized_keys") == ("600", 1000, 1000)
    assert probe.root("/etc/hostname") == "probe-7\n"
    assert [line for line in probe.root("/etc/hosts").splitlines() if line.startswith("127.0.1.1")] == [
        "127.0.1.1\tprobe-7"
    ]
    path = "/etc/NetworkManager/system-connections/tandem-wifi.nmconnection"
    assert probe.stat(path) == ("600", 0, 0)
    lines = probe.root(path).splitlines()
    assert 'ssid=x y\\; "z' in lines
    assert "psk=" + hashlib.pbkdf2_hmac("sha1", b"correct horse", b'x y; "z', 4096, 32).hex() in lines
    assert not probe.boot_has("custom.toml")


@pytest.mark.parametrize("architecture", ["armhf", "arm64"])
def test_trixie_is_told_by_cloud_inits_three_files(prepared, architecture, operator_key):
    probe = prepared["trixie", architecture]
    first, _, rest = probe.boot("user-data").partition("\n")
    assert first == "#cloud-config"
    told = json.loads(rest)
    assert told["hostname"] == "probe-7"
    (user,) = told["users"]
    assert (user["name"], user["ssh_authorized_keys"], user["lock_passwd"]) == ("tandem-admin", [operator_key], True)
    assert (told["ssh_pwauth"], told["growpart"], told["resize_rootfs"]) == (False, {"mode": "off"}, False)
    assert json.loads(probe.boot("meta-data"))["instance-id"].startswith("tandem-probe-7-")
    network = json.loads(probe.boot("network-config"))["network"]
    assert network["wifis"]["wlan0"]["access-points"]['x y; "z']["password"] not in ("", "correct horse")
    assert probe.link("/etc/systemd/system/userconfig.service") == "/dev/null"
    assert not probe.boot_has("userconf.txt")


def test_without_wifi_and_enrolment_nothing_of_them_is_there(stocks, operator_key, tmp_path):
    for key in ALL[1::2]:
        plain = Settings("probe-8", "tandem-admin", (operator_key,))
        probe = Probe(make(stocks[key].path, tmp_path / f"{key[0]}.img", plain).path)
        assert probe.stat("/etc/tandem/enrol.json") is None
        assert probe.stat("/usr/local/sbin/tandem-enrol") is None
        assert "WirelessEnabled=false" in probe.root("/var/lib/NetworkManager/NetworkManager.state")
        assert "regdom" not in probe.boot("cmdline.txt")


def test_a_packed_image_is_unpacked(stocks, operator_key, tmp_path):
    image = tmp_path / "stock.img"
    shutil.copyfile(stocks["trixie", "armhf"].path, image)
    made = make(stock_images.packed(image), tmp_path / "probe.img", Settings("p", "admin", (operator_key,)))
    assert made.image_bytes == image.stat().st_size
    assert Probe(made.path).boot_has("user-data")


def test_a_cut_off_packed_image_is_refused_and_leaves_nothing(stocks, operator_key, tmp_path):
    image = tmp_path / "stock.img"
    shutil.copyfile(stocks["trixie", "armhf"].path, image)
    packed = stock_images.packed(image)
    packed.write_bytes(packed.read_bytes()[:-1000])
    with pytest.raises(ImageError, match=r"damaged or cut off; mend"):
        make(packed, tmp_path / "probe.img", Settings("p", "admin", (operator_key,)))
    assert {path.name for path in tmp_path.iterdir()} == {"stock.img", "stock.img.xz"}


@pytest.mark.parametrize(
    ("release", "changes", "said"),
    [
        ("bullseye", {}, "bullseye.*mend: take Raspberry Pi OS Lite bookworm or trixie"),
        ("trixie", {"etc__rpi-issue": None}, "not Raspberry Pi OS"),
        ("trixie", {"usr__bin__cloud-init": None}, "no cloud-init"),
        ("bookworm", {"etc__passwd": "root:x:0:0:root:/root:/bin/bash\n"}, "no first user"),
        (
            "bookworm",
            {"usr__lib__aarch64-linux-gnu__libc.so.6": None, "usr__lib__riscv64-linux-gnu__libc.so.6": ""},
            "neither armhf nor arm64",
        ),
    ],
)
def test_what_is_no_such_image_is_refused_in_a_line(operator_key, tmp_path, release, changes, said):
    folder = tmp_path / "stock"
    folder.mkdir()
    image = stock_images.make(folder, release, "arm64", **changes)
    with pytest.raises(ImageError, match=said):
        make(image.path, tmp_path / "probe.img", Settings("p", "admin", (operator_key,)))
    assert not (tmp_path / "probe.img").exists()


def test_a_damaged_root_file_system_is_refused(stocks, operator_key, tmp_path):
    image = tmp_path / "stock.img"
    shutil.copyfile(stocks["bookworm", "arm64"].path, image)
    with image.open("r+b") as file:
        file.seek(ROOT + 4096)  # the group descriptors
        file.write(b"\xa5" * 4096)
    with pytest.raises(ImageError, match=r"not sound|cannot be read"):
        make(image, tmp_path / "probe.img", Settings("p", "admin", (operator_key,)))


def test_an_image_that_is_there_is_not_written_over(stocks, operator_key, tmp_path):
    target = tmp_path / "probe.img"
    target.write_text("mine")
    with pytest.raises(ImageError, match=r"is there already; mend"):
        make(stocks["bookworm", "arm64"].path, target, Settings("p", "admin", (operator_key,)))
    assert target.read_text() == "mine"
