"""``tandem-root`` on trees of files, as a root that is the disk and as one below a layer of memory: what it says of the next start, on
which disk and how long that is open, what it refuses, what a writable start does first. The programs it calls write down how they
were called."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from program_module import module_of

PROGRAM = Path(__file__).parents[3] / "ansible/roles/base/files/tandem-root"
LINUX = "6.12.47+rpt-rpi-v8"
ROOT, SPOOL = "/dev/mmcblk0p2 / ext4 rw,noatime 0 0\n", "/dev/mmcblk0p3 /var/lib/tandem ext4 rw 0 0\n"
MEMORY = "overlayroot / overlay rw,lowerdir=/media/root-ro 0 0\n/dev/mmcblk0p2 /media/root-ro ext4 ro 0 0\n"
CONF = "etc/overlayroot.local.conf"

tandem_root = module_of(PROGRAM)


class Probe:
    """One that may become read-only; ``overlay()``: one that is."""

    def __init__(self, folder: Path) -> None:
        self.root, self.calls, self.programs = folder / "root", folder / "calls", folder / "programs"
        for name in ("proc/sys/kernel", "etc/ssh", "etc/tandem", "boot", "run", "media/root-ro/etc", "media/root-rw"):
            (self.root / name).mkdir(parents=True)
        self.put("proc/mounts", ROOT + SPOOL)
        self.put("proc/cmdline", "console=tty1 root=PARTUUID=1-02 rootwait\n")
        self.put("proc/sys/kernel/osrelease", f"{LINUX}\n")
        self.put("etc/machine-id", "0123456789abcdef0123456789abcdef\n")
        self.put("etc/ssh/sshd_config", "")
        self.put("etc/ssh/ssh_host_ed25519_key", "")
        self.put(f"boot/initrd.img-{LINUX}", "")
        self.programs.mkdir()
        self.program("mount")
        self.program("systemctl")
        self.program("lsinitramfs", "echo scripts/init-bottom/overlayroot")

    def put(self, name: str, text: str) -> Path:
        (self.root / name).write_text(text)
        return self.root / name

    def program(self, name: str, does: str = "") -> None:
        (self.programs / name).write_text(f"#!/bin/sh\necho {name} $* >>{self.calls}\n{does}\n")
        (self.programs / name).chmod(0o755)

    def overlay(self, conf: str) -> None:
        self.put("proc/mounts", ROOT + MEMORY + SPOOL)
        self.put(f"media/root-ro/{CONF}", conf)

    def do(self, *words: str, code: int = 0) -> str:
        argv = [sys.executable, str(PROGRAM), "--root", str(self.root), *words]
        env = {**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}"}
        done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False)
        assert "Traceback" not in done.stderr
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def status(self, code: int) -> dict[str, object]:
        told: dict[str, object] = json.loads(self.do("--json", "status", code=code))
        return told

    def called(self) -> list[str]:
        """Since it was last asked, without the tree's own path."""
        said = self.calls.read_text().replace(str(self.root), "").splitlines() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        return said


@pytest.fixture
def probe(tmp_path: Path) -> Probe:
    return Probe(tmp_path)


ARMED, ONCE = tandem_root.Next(True), tandem_root.Next(False, stay=False)
OPENED = ["mount -o remount,rw /media/root-ro", "mount -o remount,ro /media/root-ro"]


@pytest.mark.parametrize(
    "following",
    [
        ARMED,
        ONCE,
        tandem_root.Next(False),
        tandem_root.Next(False, False, ["tandem-pull.service", "apt-daily.service"]),
    ],
)
def test_what_is_written_is_read_again(following) -> None:
    assert tandem_root.read_next(following.text()) == following


@pytest.mark.parametrize(
    ("text", "read_only"),
    [
        ("", False),
        ("overlayroot=tmpfs\n", True),
        ('overlayroot="tmpfs:recurse=0"\noverlayroot=""\n', False),
        ("#overlayroot=tmpfs\n", False),
        ("overlayroot='disabled' # once\n", False),
    ],
)
def test_what_others_wrote_is_what_overlayroot_makes_of_it(text: str, read_only: bool) -> None:
    assert tandem_root.read_next(text).read_only == read_only
    assert tandem_root.read_next(text).stay


@given(st.text())
def test_any_text_is_one_of_the_states(text: str) -> None:
    assert isinstance(tandem_root.read_next(text).read_only, bool)


def test_a_shell_reads_what_is_written_as_overlayroot_does(tmp_path: Path) -> None:
    for following, value in ((ARMED, "tmpfs:recurse=0"), (ONCE, "disabled")):
        (tmp_path / "conf").write_text(following.text())
        said = subprocess.run(
            ["sh", "-ec", '. "$1"; echo "$overlayroot"', "sh", tmp_path / "conf"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert (said.stdout, said.stderr) == (f"{value}\n", "")


def test_it_becomes_read_only_at_the_next_start_and_says_so_once(probe: Probe) -> None:
    assert probe.status(1) == {"now": "writable", "next": "writable", "stays": True, "works": [], "kept": True}
    assert json.loads(probe.do("--json", "read-only"))["changed"] is True
    assert probe.called() == [f"lsinitramfs /boot/initrd.img-{LINUX}"]
    assert probe.status(1)["next"] == "read-only"
    assert json.loads(probe.do("--json", "read-only"))["changed"] is False
    probe.do("read-only", "--reboot")
    assert probe.called()[-1] == "systemctl reboot"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("proc/cmdline", "root=x overlayroot=tmpfs\n", "command line"),
        ("proc/mounts", ROOT, "no partition of its own"),
        ("proc/mounts", f"{ROOT}tmpfs /var/lib/tandem tmpfs rw 0 0\n", "no partition of its own"),
        ("etc/machine-id", "uninitialized\n", "systemd-machine-id-setup"),
        ("etc/ssh/ssh_host_ed25519_key", None, "ssh-keygen -A"),
        ("etc/tandem/enrol.json", "{}", "has not enrolled"),
        (f"boot/initrd.img-{LINUX}", None, "update-initramfs"),
    ],
)  # fmt: skip
def test_what_would_be_missing_at_every_start_keeps_it_writable(
    probe: Probe, name: str, text: str | None, said: str
) -> None:
    if text is None:
        (probe.root / name).unlink()
    else:
        probe.put(name, text)
    told = probe.do("read-only", code=3)
    assert said in told
    assert "mend:" in told
    assert len(told.splitlines()) == 1
    assert not (probe.root / CONF).exists()


def test_an_initramfs_without_overlayroot_keeps_it_writable(probe: Probe) -> None:
    probe.program("lsinitramfs", "echo scripts/init-bottom/udev")
    assert "has no overlayroot" in probe.do("read-only", code=3)


def test_below_memory_the_disk_is_open_for_one_file_and_closed_again(probe: Probe) -> None:
    probe.overlay(ARMED.text())
    assert probe.status(0)["next"] == "read-only"
    assert probe.called() == []
    probe.do("writable", "--reboot")
    assert probe.called() == [*OPENED, "systemctl reboot"]
    assert (probe.root / "media/root-ro" / CONF).read_text() == ONCE.text()
    assert not (probe.root / CONF).exists()
    status = probe.status(0)
    assert (status["now"], status["next"], status["stays"]) == ("read-only", "writable", False)
    # A mind that is changed: no reason is asked of a machine that runs so.
    (probe.root / f"boot/initrd.img-{LINUX}").unlink()
    probe.do("read-only")
    assert (probe.root / "media/root-ro" / CONF).read_text() == ARMED.text()


def test_a_disk_that_does_not_open_is_said_and_one_that_cannot_be_written_is_closed(probe: Probe) -> None:
    probe.overlay(ARMED.text())
    (probe.root / "media/root-ro/etc/.overlayroot.local.conf.tmp").mkdir()
    probe.do("writable", "--reboot", code=3)
    assert probe.called() == OPENED
    probe.program("mount", "echo write-protected >&2; exit 32")
    assert "write-protected" in probe.do("writable", "--reboot", code=3)
    assert "systemctl reboot" not in probe.called()
    assert (probe.root / "media/root-ro" / CONF).read_text() == ARMED.text()


def test_a_power_cut_before_the_file_is_whole_leaves_the_one_before(probe: Probe, monkeypatch) -> None:
    file = probe.put(CONF, ARMED.text())

    def cut(*_ends):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", cut)
    with pytest.raises(KeyboardInterrupt):
        tandem_root.write(file, ONCE.text())
    assert file.read_text() == ARMED.text()


def test_a_writable_start_says_first_that_the_next_is_read_only(probe: Probe) -> None:
    probe.put(CONF, ONCE.text())
    probe.do("boot")
    assert (probe.root / CONF).read_text() == ARMED.text()
    assert not (probe.root / "run/tandem-root/work").exists()
    probe.do("boot")
    assert (probe.root / CONF).read_text() == ARMED.text()


def test_one_that_is_to_stay_writable_stays(probe: Probe) -> None:
    probe.put(CONF, ARMED.text())
    assert json.loads(probe.do("--json", "writable"))["changed"] is False, "it is, and the next start is as it was"
    assert json.loads(probe.do("--json", "writable", "--stay"))["changed"] is True
    probe.do("boot")
    assert probe.status(1)["next"] == "writable"


def test_what_a_writable_start_is_for_is_started_and_then_it_starts_anew(probe: Probe) -> None:
    probe.overlay(ARMED.text())
    probe.do("writable", "--for", "apt-daily.service", "apt-daily-upgrade.service")
    text = (probe.root / "media/root-ro" / CONF).read_text()
    probe.put("proc/mounts", ROOT + SPOOL)
    probe.put(CONF, text)
    probe.do("boot")
    assert probe.status(1)["works"] == ["apt-daily.service", "apt-daily-upgrade.service"]
    probe.called()
    probe.program("systemctl", 'case $* in "start apt-daily.service") exit 1;; esac')
    assert "apt-daily.service failed" in probe.do("work")
    assert probe.called() == [
        "systemctl start apt-daily.service",
        "systemctl start apt-daily-upgrade.service",
        "systemctl reboot",
    ]


def test_who_takes_it_over_is_not_started_anew_under(probe: Probe) -> None:
    probe.put(CONF, tandem_root.Next(False, False, ["tandem-pull.service"]).text())
    probe.do("boot")
    work = probe.root / "run/tandem-root/work"
    probe.program("systemctl", f"rm -f {work}")  # a person's `tandem-root writable` comes while the unit runs
    probe.do("work")
    assert probe.called() == ["systemctl start tandem-pull.service"]
    probe.do("boot")
    assert not work.exists()
    probe.do("work")
    assert probe.called() == []


@pytest.mark.parametrize("unit", ["x", "../x.service", "-x.service", "x.timer", "a b.service"])
def test_what_is_no_service_is_not_started(probe: Probe, unit: str) -> None:
    probe.overlay(ARMED.text())
    probe.do("writable", "--for", unit, code=2)
    assert probe.called() == []


def test_a_root_that_is_writable_has_nothing_to_wait_for(probe: Probe) -> None:
    assert "mend: systemctl start" in probe.do("writable", "--for", "x.service", code=3)
