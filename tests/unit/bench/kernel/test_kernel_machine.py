"""``tandem-bench kernel`` with a program in QEMU's place: what becomes of the machine is told by status, manifest and one line,
and it is gone.

The consoles are made by hand, after Linux 4.14's source and after what ``init.sh`` and Debian's mount say; a serial console ends lines by
CR and LF."""

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tandem_bench.cli import kernel as command
from tandem_bench.cli.main import main
from tandem_bench.kernel import machine

EMULATOR = """#!/bin/sh
for word; do
    case "$word" in
        file:*/console) console=${{word#file:}} ;;
        local,path=*,mount_tag=share,*) share=${{word#local,path=}} && share=${{share%%,*}} ;;
    esac
done
echo $$ >"{folder}/pid"
cat "{folder}/console" >"$console"
cd "$share" && {then}
"""
NOISE = "[    0.000000] Linux version 4.14.67-mptcp (root@vm)\n[    0.601774] MPTCP: Stable release v0.94.1\n"
NO_DISK = "insmod: can't insert '/modules/ext4.ko': invalid module format\nmount: mounting /dev/vda on /new failed: No such device\n"
NO_ROOT = "no root\n"
NO_INITRAMFS = """[    1.201] VFS: Cannot open root device "(null)" or unknown-block(0,0): error -6
[    1.202] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)
"""
NO_SCRIPTS = """[    1.201] Failed to execute /init (error -8)
[    1.202] Kernel panic - not syncing: No working init found.  Try passing init= option to kernel.
"""
NO_9P = "mount: /run/vm: unknown filesystem type '9p'.\n"
NO_TRANSPORT = "mount: /run/vm: wrong fs type, bad option, bad superblock on share, missing codepage or helper program, or other error.\n"
NO_OVERLAY = "mount: /home/me/tandem: unknown filesystem type 'overlay'.\n"
OOPS = """[    9.101] BUG: unable to handle kernel NULL pointer dereference at 0000000000000010
[    9.102] IP: mptcp_write_xmit+0x1a2/0x9d0
[    9.103] Kernel panic - not syncing: Fatal exception in interrupt
[    9.104] Kernel Offset: 0x2c000000 from 0xffffffff81000000
"""
RAN = "echo 0.9 >booted; echo 127 >exit; : >stdout; echo 'sh: exec: python3: not found' >stderr"
Play = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    """What a machine says and then does → exit status and manifest."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def play(console: str, then: str, *words: str) -> tuple[int, dict[str, Any]]:
        (tmp_path / "console").write_text(console, newline="\r\n")
        program = tmp_path / "bin/qemu-system-x86_64"
        program.parent.mkdir()
        program.write_text(EMULATOR.format(folder=tmp_path, then=then))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        monkeypatch.setenv(machine.ACCELERATOR, "tcg")
        monkeypatch.setattr(machine, "built", lambda: tmp_path)
        monkeypatch.setattr(machine, "lacks", lambda: None)
        status = main(["kernel", "--image", "stock", "--out", str(tmp_path / "out"), *words])
        assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()
        assert (tmp_path / "out/console.log").read_text() in (console, "")
        return status, json.loads((tmp_path / "out" / command.MANIFEST).read_text())

    yield play
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("console", "then", "status", "says"),
    [
        (NO_DISK + NO_ROOT, "exit 0", 3, "CONFIG_VIRTIO_BLK"),
        (NO_INITRAMFS, "exit 0", 3, "CONFIG_BLK_DEV_INITRD"),
        (NO_SCRIPTS, "exit 0", 3, "CONFIG_BINFMT_SCRIPT"),
        (NO_9P, "exit 0", 3, "CONFIG_9P_FS"),
        (NO_TRANSPORT, "exit 0", 3, "CONFIG_NET_9P_VIRTIO"),
        (NO_OVERLAY, RAN, 3, "CONFIG_OVERLAY_FS"),
        (OOPS, "exit 0", 1, "the kernel panicked: Fatal exception in interrupt"),
        (OOPS, "echo 0.9 >booted; exit 0", 1, "the kernel panicked: Fatal exception in interrupt"),
        ("", "exit 0", 1, "the machine ended before its command did"),
        ("", RAN, 1, "the machine's program ended with status 127: sh: exec: python3: not found"),
    ],
)
def test_why_it_did_not_come_up_or_end_is_named_and_stands_in_the_manifest(
    play: Play, capsys: pytest.CaptureFixture[str], console: str, then: str, status: int, says: str
) -> None:
    got, told = play(NOISE + console, then)
    assert (got, told["lacks"]) == (status, status == 3)
    assert says in told["failure"]
    assert capsys.readouterr().err.splitlines() == [f"tandem-bench kernel: {told['failure']}"]


def test_an_emulator_that_does_not_start_is_this_machines_lack(play: Play) -> None:
    assert play("", "exit 1")[0] == 3


@pytest.mark.parametrize("console", ["", NOISE])
@pytest.mark.parametrize("begun", ["", "echo 0.9 >booted; "])
def test_a_machine_over_its_time_is_ended_and_is_a_failure_not_a_lack(play: Play, console: str, begun: str) -> None:
    status, told = play(console, f"{begun}exec sleep 600", "--timeout", "0.5")
    assert (status, told["lacks"], told["ok"]) == (1, False, False)
    assert told["failure"].startswith("the machine did not end within 0.5 s")


def test_a_stop_takes_the_machine_down_and_the_manifest_says_so(play: Play) -> None:
    status, told = play(NOISE, "kill -TERM $PPID; exec sleep 600")
    assert (status, told["failure"], told["ok"]) == (130, "stopped (SIGTERM)", False)


@pytest.mark.parametrize(
    ("inside", "status"),
    [
        ({"failure": None, "ok": True, "linux": "4.14.67-mptcp"}, 0),
        ({"failure": None, "ok": False}, 1),
        ({"failure": "collector ended by itself with status 1", "ok": False}, 1),
        ({"failure": "the kernel has no TUN (CONFIG_TUN); hint: build it in (=y)", "lacks": True, "ok": False}, 3),
    ],
)
def test_what_its_program_says_is_the_manifest_and_the_status(play: Play, inside: dict[str, Any], status: int) -> None:
    end = f"printf '%s' '{json.dumps(inside)}' >told.json; echo {status} >exit; : >stdout; : >stderr; echo 1 >booted"
    got, told = play(NOISE, end)
    assert (got, told["failure"], told["release"]) == (status, inside["failure"], inside.get("linux"))


WHOLE = "mkdir -p made/probe && echo it >made/probe/run.json && tar -czf kit.tar.gz -C made . && rm -r made"
TOLD = """printf '%s' '{"failure": null, "ok": true}' >told.json; echo 0 >exit; : >stdout; : >stderr; echo 1 >booted"""


@pytest.mark.parametrize(("packs", "status"), [(WHOLE, 0), (f"{WHOLE}; truncate -s 40 kit.tar.gz", 1)])
def test_the_campaign_folder_comes_out_and_one_that_is_torn_is_a_failure(
    play: Play, tmp_path: Path, packs: str, status: int
) -> None:
    got, told = play(NOISE, f"{packs}; {TOLD}")
    assert got == status
    if status:
        assert told["failure"].startswith("the campaign folder did not arrive whole: ")
    else:
        assert (tmp_path / "out/kit/probe/run.json").read_text() == "it\n"
