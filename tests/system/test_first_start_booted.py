"""A card's first start under a real systemd, in a container: bookworm's, by the words on the kernel's command line, and the next start.
Trixie's, by cloud-init: test_quickstart.py.

The root is the targets' bare Debian, the boot partition a folder with the files that ./kit image writes.
"""

import os
import subprocess

import pytest
from targets import first_boot
from targets.available import lacks, made

from support import stock_images
from tandem_image.first_start import boot_files
from tandem_image.image import BootPartition, unpack
from tandem_image.settings import Settings

SETTINGS = Settings("kit-01", "tandem-admin", ("ssh-ed25519 AAAA anna@laptop",), "DE", gateway="https://s:8443")
# What a machine that came up to its end says of itself, before it ends.
REPORT = """[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c '{ id -nG tandem-admin; hostname; systemctl is-enabled tandem-spool; } >/report.new; mv /report.new /report'
ExecStopPost=systemctl --no-block exit 0
[Install]
WantedBy=default.target
"""


class Machine:
    def __init__(self, root):
        self.root, self.boot = root, root / "boot/firmware"

    def start(self, *words, status=0):
        """Until it ends by itself. ``words``: of its command line."""
        first_boot.until_it_ends(self.root, *words, status=status)

    def is_ready(self):
        """Assert what the first start is for, as the machine itself sees it at the next."""
        groups, name, spool = (self.root / "report").read_text().splitlines()
        assert {"tandem-admin", "sudo"} <= set(groups.split())
        assert (name, spool) == ("kit-01", "enabled")
        assert (self.root / "home/tandem-admin/.ssh/authorized_keys").read_text() == f"{SETTINGS.keys[0]}\n"
        assert not (self.boot / "firstrun.sh").exists()


@pytest.fixture
def machine(tmp_path):
    if os.geteuid() != 0 or lacks() is not None:
        pytest.skip(lacks() or "needs root")
    stock = stock_images.make(tmp_path, "bookworm")
    unpack(stock.path, tmp_path / "card.img")
    partition = BootPartition(tmp_path / "card.img")
    partition.write(boot_files(partition, SETTINGS))
    for name in ("root", "upper", "work"):
        (tmp_path / "on" / name).mkdir(parents=True)
    options = f"lowerdir={made() / 'root'},upperdir={tmp_path}/on/upper,workdir={tmp_path}/on/work"
    layered = tmp_path / "on/root"
    subprocess.run(["mount", "-t", "overlay", "-o", options, "overlay", layered], check=True)
    try:
        machine = Machine(layered)
        machine.boot.mkdir(parents=True)
        for name, text in stock_images.boot_files(tmp_path / "card.img").items():
            (machine.boot / name).write_text(text)
            (machine.boot / name).chmod(0o755)  # as FAT is mounted
        units = layered / "etc/systemd/system"
        (units / "report.service").write_text(REPORT)
        (units / "multi-user.target.wants").mkdir(exist_ok=True)
        (units / "multi-user.target.wants/report.service").symlink_to("/etc/systemd/system/report.service")
        yield machine
    finally:
        subprocess.run(["umount", layered], check=True)


def test_bookworm_by_the_words_on_its_command_line(machine):
    words = [word for word in (machine.boot / "cmdline.txt").read_text().split() if word.startswith("systemd.")]
    machine.start(*words, status=first_boot.RESTARTS)
    assert not (machine.root / "report").exists()
    machine.start(*(word for word in (machine.boot / "cmdline.txt").read_text().split() if word.startswith("systemd.")))
    machine.is_ready()
