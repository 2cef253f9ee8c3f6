"""A card's partitions: ``tandem-spool`` on a stock image's own table and root, after its first start.

The card is a file behind a loop device; each start attaches it, enters its root file system (with this machine's programs bound into it),
runs ``tandem-spool`` and lets go of everything. Only the tests need loop devices; making an image does not.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

import tandem_image
from support import stock_images

GIB = 1 << 30
SCRIPT = Path(tandem_image.__file__).parent / "files/tandem-spool"
UUID = "7d2c8f1e-5a0b-4c3d-9e6f-1a2b3c4d5e6f"
PROGRAMS = (
    *("losetup", "partx", "sfdisk", "resizepart", "mkfs.ext4", "resize2fs", "findfs"),
    *("lsblk", "blkid", "addpart", "unshare"),
)
CARD = 12 * GIB

# $1: the card's file, $2: a folder to mount its root on, $3: what to run there after tandem-spool, in a shell.
START = r"""
set -eu
card=$1 root=$2 then=$3
loop=$(losetup --show --find "$card") || exit 77
# What a killed script had started, or udev, may still use it; partitions that stay would meet the device's next user.
once_free() { for _ in $(seq 600); do "$@" 2>/dev/null && return; sleep 0.1; done; "$@"; }
undo="losetup --detach $loop"
trap 'eval "$undo"' EXIT
partx --add "$loop" || exit 77
undo="once_free partx --delete $loop; $undo"
mount -t tmpfs none /dev
node() {
    IFS=: read -r major minor <"/sys/class/block/$1/dev"
    mknod "/dev/$1" b "$major" "$minor"
}
for place in /sys/class/block/"${loop##*/}"*; do node "${place##*/}"; done
mknod /dev/null c 1 3
mount "/dev/${loop##*/}p2" "$root"
undo="once_free umount --recursive $root; $undo"
mkdir -p "$root/usr" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/run"
for folder in bin sbin lib lib64; do [ -L "$root/$folder" ] || ln -s "usr/$folder" "$root/$folder"; done
mount --bind /usr "$root/usr"
mount -o remount,bind,ro "$root/usr"
mount --bind /dev "$root/dev"
mount -t tmpfs none "$root/run"
mount -t proc none "$root/proc"
mount -t sysfs none "$root/sys"
PATH=/as-udev:/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" /bin/sh -c "$then"
"""

# addpart, and what udev makes of it: a device file.
AS_UDEV = """#!/bin/sh
set -eu
/usr/bin/addpart "$@"
IFS=: read -r major minor <"/sys/class/block/${1##*/}p$2/dev"
mknod "$1p$2" b "$major" "$minor"
"""


@dataclass
class Card:
    """The file that stands for it."""

    file: Path
    root: Path

    def start(self, then: str = "/tandem-spool") -> subprocess.CompletedProcess[str]:
        self.root.mkdir(exist_ok=True)
        words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", START, "start"]
        return subprocess.run(
            [*words, str(self.file), str(self.root), then], capture_output=True, text=True, check=False
        )

    def good(self, then: str = "/tandem-spool") -> str:
        done = self.start(then)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def flashed(tmp_path_factory) -> Path:
    """An image on a card that held something else before."""
    lacking = stock_images.missing_tools() + [
        name for name in PROGRAMS if shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") is None
    ]
    if lacking or os.geteuid() != 0:
        pytest.skip(f"needs root and {', '.join(lacking or PROGRAMS)}")
    folder = tmp_path_factory.mktemp("flashed")
    stock = stock_images.make(
        folder,
        "trixie",
        root={
            "tandem-spool": SCRIPT.read_text(),
            "as-udev/addpart": AS_UDEV,
            "etc/tandem/spool.conf": f"partuuid={stock_images.DISK_ID:08x}-03\nuuid={UUID}\n",
        },
    )
    card = stock.path
    os.truncate(card, CARD)
    tried = Card(card, folder / "mounted").start("true")
    assert tried.returncode in (0, 77), tried.stderr
    if tried.returncode == 77:
        pytest.skip(f"no partitions behind a loop device here: {tried.stderr.strip()}")
    return card


@pytest.fixture
def card(flashed, tmp_path) -> Card:
    """A copy of its own, holes kept."""
    subprocess.run(["cp", "--sparse=always", str(flashed), str(tmp_path / "card")], check=True)
    return Card(tmp_path / "card", tmp_path / "mounted")


PART = "$(findfs PARTUUID=$(sed -n s/^partuuid=//p /etc/tandem/spool.conf))"
SIZES = "df --block-size=1M --output=size / /var/lib/tandem | tail -n 2"


def _may_resize_what_is_mounted() -> bool:
    """CAP_SYS_RESOURCE (24), which containers often take from root, and systemd has."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff:"))
    return bool(int(line.split()[1], 16) >> 24 & 1)


def test_the_root_gets_its_partition_and_the_spool_the_rest_of_the_card(card):
    said = card.good(f"/tandem-spool && {SIZES} && blkid -p -o export -s LABEL -s UUID {PART}")
    root_mib, spool_mib = (int(line) for line in said.splitlines() if line.strip().isdecimal())
    if _may_resize_what_is_mounted():
        assert 7600 < root_mib <= 8192
    else:
        assert "the root file system did not grow; tried again at the next boot" in said
    assert 3600 < spool_mib <= 4096  # 12 GiB less root, boot and what ext4 takes
    assert "LABEL=tandem-spool" in said
    assert f"UUID={card.good('sed -n s/^uuid=//p /etc/tandem/spool.conf').strip()}" in said


def test_what_is_in_the_spool_outlives_the_next_starts(card):
    card.good("/tandem-spool && echo kept >/var/lib/tandem/record")
    said = card.good("/tandem-spool && cat /var/lib/tandem/record && /tandem-spool")
    assert "kept" in said
    assert "making" not in said
    assert "growing" not in said
    assert "mounted already" in said


def test_what_the_card_held_before_it_was_flashed_is_no_spool(card):
    card.good("/tandem-spool && echo old >/var/lib/tandem/record")
    # Another image's file system lies there, and the root is new.
    card.good(f"mkfs.ext4 -q -F -L tandem-spool {PART} && rm /etc/tandem/spool.made")
    said = card.good("/tandem-spool && ls -A /var/lib/tandem")
    assert "making the spool" in said


@pytest.mark.parametrize("cut", ["findfs", "sfdisk", "resizepart", "addpart", "mkfs.ext4", "e2fsck"])
def test_a_power_cut_at_any_of_its_steps_is_made_good_by_the_next_start(card, cut):
    """The program is replaced by one that ends the script on the spot, when the work before it is done."""
    trap = f"mkdir -p /tmp/cut && printf '#!/bin/sh\\nkill -9 $PPID\\n' >/tmp/cut/{cut} && chmod +x /tmp/cut/{cut}"
    assert card.start(f"{trap} && PATH=/tmp/cut:$PATH /tandem-spool").returncode != 0
    said = card.good(f"/tandem-spool && {SIZES}")
    _, spool_mib = (int(line) for line in said.splitlines() if line.strip().isdecimal())
    assert 3600 < spool_mib <= 4096


def test_a_spool_that_was_and_is_gone_is_not_made_anew(card):
    card.good("/tandem-spool")
    card.good(f"printf '%16384s' '' >{PART}")
    done = card.start()
    assert done.returncode == 1
    assert "gone and is not made anew" in done.stdout
    assert (
        card.good(f"e2fsck -fy -b 32768 {PART} >/dev/null; /tandem-spool").strip().endswith("is mounted")
    )  # the mend that it names


def test_a_damaged_spool_is_mended_without_hands(card):
    card.good("/tandem-spool && for n in 1 2 3; do echo $n >/var/lib/tandem/$n; done")
    # The root folder is lost, before which e2fsck -p stops; what was in it is found again, without its names.
    card.good(f"debugfs -w -R 'clri <2>' {PART}")
    found = "find /var/lib/tandem/lost+found -type f -exec cat {} + | sort"
    said = card.good(f"/tandem-spool && {found} && umount /var/lib/tandem && e2fsck -fn {PART}")
    assert "mending the spool" in said
    assert "1\n2\n3\n" in said


def test_on_a_larger_card_the_spool_grows_and_keeps_what_it_has(card):
    card.good("/tandem-spool && echo kept >/var/lib/tandem/record")
    os.truncate(card.file, CARD + 2 * GIB)
    said = card.good(f"/tandem-spool && cat /var/lib/tandem/record && {SIZES}")
    _, spool_mib = (int(line) for line in said.splitlines() if line.strip().isdecimal())
    assert "kept" in said
    assert spool_mib > 5600
