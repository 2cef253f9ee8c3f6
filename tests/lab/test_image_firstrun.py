"""firstrun.sh on the root of a stock image, in a chroot with this machine's programs; and cut off before each program that it starts.

What starts it is played as the two releases do it: bookworm by a word on the kernel's command line, trixie where the file is there.
"""

import json
import os
import shutil
import subprocess

import pytest

from support import stock_images
from tandem_image.first_start import boot_files
from tandem_image.image import BootPartition, unpack
from tandem_image.settings import Bearer, Settings

CODE = "invite_" + "c" * 43
KEYS = ("ssh-ed25519 AAAA anna's laptop", "ssh-ed25519 BBBB ben")
SETTINGS = Settings(
    "kit-01", "tandem-admin", KEYS, "DE", "home", "0" * 64, (Bearer("internet"),), "https://s:8443", "PEM\n", CODE
)
PROGRAMS = (
    *("tar", "pwconv", "grpconv", "useradd", "usermod", "getent", "id", "install", "chown", "chmod", "mv", "sed"),
    *("grep", "sync", "rm", "rfkill", "dirname", "cut", "base64", "cat"),
)
# $1: the root. All mounts go with the namespace; this machine's programs cannot be changed, /usr/local is the root's own.
START = r"""
set -eu
root=$1
mkdir -p "$root/dev" "$root/tmp" "$root/run" "$root/usr" "$root/local"
for folder in bin sbin lib lib64; do [ -L "$root/$folder" ] || ln -s "usr/$folder" "$root/$folder"; done
mount --bind /usr "$root/usr"
mount -o remount,bind,ro "$root/usr"
mount --bind "$root/local" "$root/usr/local"
mount --bind /dev "$root/dev"
mount -t tmpfs none "$root/run"
PATH=/cut:/usr/sbin:/usr/bin exec chroot "$root" sh /boot/firmware/firstrun.sh
"""
WRAPPER = """#!/bin/sh
echo >>/cut/count
read -r at </cut/at
if [ $at -gt 0 ] && [ $(/usr/bin/wc -l </cut/count) -ge $at ]; then kill -9 0; fi
PATH=/usr/sbin:/usr/bin exec ${0##*/} "$@"
"""


class Kit:
    """A root with its boot partition in /boot/firmware."""

    def __init__(self, root):
        self.root, self.boot = root, root / "boot/firmware"

    def start(self, cut_before=0):
        """One start, as far as it comes; whether it went to its end."""
        if not self.is_due():
            return True
        (self.root / "cut/at").write_text(f"{cut_before}\n")
        (self.root / "cut/count").write_text("")
        words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", START, "start", str(self.root)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, start_new_session=True)
        assert done.returncode in ((0, -9) if cut_before else (0,)), done.stdout + done.stderr
        return done.returncode == 0

    def is_due(self):
        by_command_line = "systemd.run=" in (self.boot / "cmdline.txt").read_text()
        return by_command_line or ((self.boot / "user-data").exists() and (self.boot / "firstrun.sh").exists())

    def text(self, path):
        return (self.root / path).read_text()


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def flashed(request, tmp_path_factory):
    """The partitions' files as on a card that was just written."""
    return lay_out(request.param, tmp_path_factory.mktemp(request.param))


def lay_out(release, folder):
    lacking = [name for name in ("chroot", "unshare", "useradd", "pwconv", "mtype") if shutil.which(name) is None]
    if os.geteuid() != 0 or lacking:
        pytest.skip(f"needs root and {', '.join(lacking or ['chroot'])}")
    stock = stock_images.make(folder, release)
    unpack(stock.path, folder / "card.img")
    partition = BootPartition(folder / "card.img")
    partition.write(boot_files(partition, SETTINGS))
    files = stock_images.boot_files(folder / "card.img")
    (stock.root / "boot/firmware").mkdir(parents=True)
    (stock.root / "cut").mkdir()
    for name, text in files.items():
        (stock.root / "boot/firmware" / name).write_text(text)
    for name in PROGRAMS:
        (stock.root / "cut" / name).write_text(WRAPPER)
        (stock.root / "cut" / name).chmod(0o755)
    return stock.root


@pytest.fixture
def kit(flashed, tmp_path):
    return Kit(shutil.copytree(flashed, tmp_path / "root", symlinks=True))


def whole(kit):
    """Assert all that the first start is for."""
    shadow = dict(line.split(":")[:2] for line in kit.text("etc/shadow").splitlines())
    assert shadow["tandem-admin"] == "*"  # neither empty (no password asked) nor begun by ! (locked)
    (account,) = [line.split(":") for line in kit.text("etc/passwd").splitlines() if line.startswith("tandem-admin:")]
    groups = {line.split(":")[0] for line in kit.text("etc/group").splitlines() if "tandem-admin" in line}
    assert {"tandem-admin", "adm", "sudo", "video", "plugdev", "netdev", "gpio"} <= groups
    keys = kit.root / account[5].lstrip("/") / ".ssh/authorized_keys"
    assert keys.read_text() == "".join(f"{key}\n" for key in KEYS)
    for path, mode in ((keys, 0o600), (keys.parent, 0o700)):
        told = path.stat()
        assert (told.st_uid, told.st_gid, told.st_mode & 0o777) == (int(account[2]), int(account[3]), mode)
    assert kit.text("etc/hostname") == "kit-01\n"
    assert [line for line in kit.text("etc/hosts").splitlines() if "127.0.1.1" in line] == ["127.0.1.1\tkit-01"]
    assert "localhost" in kit.text("etc/hosts")
    assert kit.text("var/lib/systemd/rfkill/platform-fe300000.mmcnr:wlan") == "0\n"
    assert "WirelessEnabled=true" in kit.text("var/lib/NetworkManager/NetworkManager.state")
    assert json.loads(kit.text("etc/tandem/enrol.json"))["code"] == CODE
    assert (kit.root / "etc/tandem/enrol.json").stat().st_mode & 0o777 == 0o600
    for name, target in (("tandem-spool", "local-fs"), ("tandem-enrol", "multi-user")):
        unit = kit.root / f"etc/systemd/system/{target}.target.wants/{name}.service"
        assert (kit.root / str(unit.readlink()).lstrip("/")).is_file()
        assert os.access(kit.root / f"local/sbin/{name}", os.X_OK)
    # Nothing starts it again, and nothing secret is left where any computer shows it.
    assert not kit.is_due()
    assert "systemd." not in (kit.boot / "cmdline.txt").read_text()
    assert "root=PARTUUID=" in (kit.boot / "cmdline.txt").read_text()
    assert "cfg80211.ieee80211_regdom=DE" in (kit.boot / "cmdline.txt").read_text()
    for file in kit.boot.iterdir():
        assert CODE not in file.read_text()
        assert SETTINGS.psk not in file.read_text()


def test_the_first_start_is_made_and_takes_itself_away(kit):
    kit.start()
    whole(kit)
    assert not (kit.boot / "firstrun.sh").exists()


def test_cut_off_before_any_program_it_is_made_whole_by_the_next_start(tmp_path):
    (tmp_path / "flashed").mkdir()
    flashed, at, went_through = lay_out("bookworm", tmp_path / "flashed"), 0, False
    while not went_through:
        at += 1
        kit = Kit(shutil.copytree(flashed, tmp_path / str(at), symlinks=True))
        went_through = kit.start(cut_before=at)
        kit.start()
        whole(kit)
        shutil.rmtree(kit.root)
    assert at > 45
