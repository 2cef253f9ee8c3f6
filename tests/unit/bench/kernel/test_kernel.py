"""``tandem-bench kernel``: a user's image refused or named, what the machine lacks, and how it ends with a program in QEMU's place."""

import json
import signal
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.program_module import module_of
from support.v094_tree import Tree
from tandem_bench.cli import kernel as command
from tandem_bench.cli.main import main
from tandem_bench.kernel import SEED, inside, machine
from tandem_bench.kernel.image import lack, panic, read, release_of
from tandem_bench.kernel.machine import REPOSITORY
from tandem_bench.topology import topology
from tandem_bench.topology.spec import TopologySpec, commuting


def bzimage(release: str, place: int = 0x3000) -> bytes:
    """As far as its setup header goes (Documentation/arch/x86/boot.rst)."""
    made = bytearray(place + 0x400)
    made[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", made, 0x20E, place - 0x200)
    text = f"{release} (root@vm) #1 SMP\0".encode()
    made[place : place + len(text)] = text
    return bytes(made)


def test_an_image_says_its_release_before_it_is_started(tmp_path: Path) -> None:
    file = tmp_path / "bzImage"
    file.write_bytes(bzimage("4.14.67-mptcp"))
    found = read(str(file))
    assert (found.release, found.stock, len(found.sha256 or "")) == ("4.14.67-mptcp", False, 64)
    assert (read("stock").file, read("stock").stock) == (None, True)


def test_what_is_none_is_refused_with_the_hint_and_starts_nothing(tmp_path, monkeypatch, capsys):
    file = tmp_path / "bzImage"
    monkeypatch.setattr(machine, "run", None)
    for content, says in (
        (None, "No such file or directory"),
        (b"", "no Linux image for x86"),
        (b"\x7fELF" + bytes(0x4000), "no Linux image for x86"),
        (bzimage("6.1.0-56-amd64"), "Linux 6.1.0-56-amd64, not 4.14"),
        (bzimage("4.140.1"), "not 4.14"),
    ):
        if content is not None:
            file.write_bytes(content)
        assert main(["kernel", "--image", str(file), "--out", str(tmp_path / "out")]) == 2
        (said,) = capsys.readouterr().err.splitlines()
        assert f"{file}: " in said
        assert says in said
        assert said.endswith("--image stock")
        assert not (tmp_path / "out").exists()


@given(
    st.binary(max_size=0x400) | st.builds(lambda a, b: a + b"HdrS" + b, st.just(bytes(0x202)), st.binary(max_size=300))
)
def test_any_bytes_have_a_release_or_none(content: bytes) -> None:
    assert release_of(content) is None or " " not in str(release_of(content))


def test_a_console_that_says_nothing_of_it_names_nothing() -> None:
    console = (
        "MPTCP: Stable release v0.94.1\nNOHZ: local_softirq_pending 08\nhtb: netem qdisc 8002: is non-work-conserving?\n"
        "insmod: can't insert '/modules/ext4.ko': invalid module format\n"
    )
    assert (lack(console), panic(console)) == (None, None)


# --- in the machine, before anything is started: what the kernel does not have is named; on ``v094_tree``, which stands in for v0.94


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """Root of the machine, where every call of a program succeeds."""
    made = Tree(tmp_path / "root", mptcp_enabled="2", mptcp_path_manager="default", mptcp_scheduler="roundrobin")
    made.write("proc/sys/net/ipv4/tcp_available_congestion_control", "cubic reno lia olia wvegas balia")
    monkeypatch.setattr(inside, "_SYSCTLS", made.root / "proc/sys")
    monkeypatch.setattr(inside, "_NAMED", tmp_path / "netns")
    monkeypatch.setattr(inside, "out_of_tree", lambda: True)
    monkeypatch.setattr(inside, "require", lambda: None)
    without(monkeypatch, "nothing")
    monkeypatch.chdir(tmp_path)
    return made


def without(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Calls of ``program`` fail, all others succeed and do nothing."""

    def run(argv: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
        assert argv[0] != program or not more["check"], "nothing is undone that was not made"
        return subprocess.CompletedProcess(argv, int(argv[0] == program), '{"rows": []}', "")

    monkeypatch.setattr(inside.subprocess, "run", run)


def told(*words: str) -> tuple[int, dict[str, Any]]:
    status = inside.main(words)
    return status, json.loads(Path("told.json").read_text())


@pytest.mark.usefixtures("tree")
def test_a_driver_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for program, says in (("test", "CONFIG_TUN"), ("ip", "CONFIG_VETH"), ("nft", "CONFIG_NFT_CHAIN_NAT_IPV4")):
        without(monkeypatch, program)
        status, said = told("downloads")
        assert (status, said["lacks"]) == (3, True)
        assert says in said["failure"]
        assert said["failure"].endswith("; hint: build it in (=y)")


def test_the_papers_settings_are_made_where_they_hold_for_the_whole_machine(tree: Tree) -> None:
    status, said = told("self-test")
    assert (status, said["failure"], said["ok"]) == (0, None, True)
    for name, value in {
        "mptcp/mptcp_enabled": "1",
        "mptcp/mptcp_path_manager": "fullmesh",
        "mptcp/mptcp_scheduler": "default",
        "ipv4/tcp_congestion_control": "cubic",
        "ipv4/tcp_allowed_congestion_control": "cubic reno lia olia wvegas balia",
    }.items():
        assert (tree.root / "proc/sys/net" / name).read_text() == f"{value}\n"


def test_a_path_manager_that_is_not_built_in_is_named(tree: Tree) -> None:
    place = tree.root / "proc/sys/net/mptcp/mptcp_path_manager"
    place.unlink()
    place.mkdir()  # it cannot be written
    status, said = told("self-test")
    assert (status, said["lacks"]) == (3, True)
    assert said["failure"].startswith("net.mptcp.mptcp_path_manager = fullmesh: ")


@pytest.mark.usefixtures("tree")
def test_a_fault_of_ours_in_there_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inside, "_self_test", lambda: {}["broken"])
    with pytest.raises(KeyError):
        inside.main(["self-test"])
    said = json.loads(Path("told.json").read_text())
    assert "stderr.log" in said["failure"]


@pytest.mark.usefixtures("tree")
def test_the_machines_random_numbers_begin_with_some_of_the_machine_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, bytes]] = []
    monkeypatch.setattr("fcntl.ioctl", lambda _file, number, content: given.append((number, content)))
    assert told("self-test")[0] == 0
    assert given == []
    Path(SEED).write_bytes(b"abcd")
    assert told("self-test")[0] == 0
    assert given == [(0x40085203, b"\x20\0\0\0\x04\0\0\0abcd")]


class Nothing:
    """A topology and its programs, of which nothing is made."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.spec = TopologySpec(commuting(inside.OFFERS))

    def __enter__(self) -> "Nothing":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def command(self, _namespace: str, argv: list[str]) -> list[str]:
        return argv

    def nothing(self, *_: object) -> None:
        pass

    start_links = start = watch = nothing


def test_a_campaign_is_begun_with_the_rights_that_a_path_takes_before_linux_5_7(tmp_path, monkeypatch):
    """``tandem campaign run`` itself asks the server, over the paths, what its kernel has; on a kit it has root's rights, by sudo."""
    asked: list[list[str]] = []

    def run(argv: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        asked.append(argv)
        return subprocess.CompletedProcess(argv, 0, 'roles = ["wired", "wireless"]\n', "")

    for name, made in (("Topology", Nothing), ("Programs", Nothing), ("out_of_tree", lambda: True)):
        monkeypatch.setattr(inside, name, made)
    monkeypatch.setattr(inside, "start_server", lambda *_: None)
    monkeypatch.setattr(inside, "find_influxd", lambda: "influxd")
    monkeypatch.setattr(inside.subprocess, "run", run)
    said = inside.Kit(tmp_path).play(["campaign", "cordero-bandwidth", "emulated"])
    assert said["failure"] == "no run was made"
    begun = asked[-1]
    assert begun[begun.index("--ambient-caps") + 1] == "-all,+net_admin,+net_raw"
    assert begun[begun.index("campaign") :][:3] == ["campaign", "run", "cordero-bandwidth"]
    assert "--allow-substitutes" not in begun, "that kernel has what the paper had"


@pytest.mark.parametrize("old", [True, False])
def test_no_route_chooses_a_controller_where_that_would_go_before_a_sessions(monkeypatch, old):
    """Linux 4.14 takes a route's (tcp_ca_openreq_child) before the listener's, which is a session's there."""
    said: list[str] = []
    monkeypatch.setattr(topology, "out_of_tree", lambda: old)
    made = topology.Topology(TopologySpec(commuting(inside.OFFERS)))
    monkeypatch.setattr(made, "_veth", lambda *_: None)
    monkeypatch.setattr(made, "run", lambda _name, _argv, text="": said.append(text))
    made._server()
    assert "route add default via 203.0.113.1" in "".join(said)
    assert ("congctl" in "".join(said)) is not old


# --- ``tandem-bench kernel`` with a program in QEMU's place: what becomes of the machine is told by status, manifest and one line, and it
# is gone. The consoles are made by hand, after Linux 4.14's source and after what ``init.sh`` and Debian's mount say; a serial console
# ends lines by CR and LF


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
def test_why_it_did_not_come_up_or_end_is_named_and_stands_in_the_manifest(play, capsys, console, then, status, says):
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
def test_the_campaign_folder_comes_out_and_one_that_is_torn_is_a_failure(play, tmp_path, packs, status):
    got, told = play(NOISE, f"{packs}; {TOLD}")
    assert got == status
    if status:
        assert told["failure"].startswith("the campaign folder did not arrive whole: ")
    else:
        assert (tmp_path / "out/kit/probe/run.json").read_text() == "it\n"


# --- tests/bench/two_stacks.py and its scene in the machine, where they differ on v0.94


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """A program of ``tests/bench``; started, it finds its neighbours beside it."""
    monkeypatch.syspath_prepend(REPOSITORY / "tests/bench")
    return lambda name: module_of(REPOSITORY / "tests/bench" / name)


def test_the_scene_gives_the_second_address_its_route_once_the_link_has_its_own_anew(
    bench: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux takes the routes over a link away with its last address."""
    scene, said = bench("stacks_scene.py"), list[str]()
    space = SimpleNamespace(run=said.append, inside=lambda action: action())
    pair = SimpleNamespace(probe=space, server=space, tell=lambda *_: None)
    monkeypatch.setattr(scene, "radio_pair", lambda *_: nullcontext(pair))
    monkeypatch.setattr(scene.v094, "present", lambda: True)
    monkeypatch.setattr(scene.netlink, "change_link_flags", lambda *_: None)
    monkeypatch.setattr(scene, "_known", lambda: frozenset({scene.A, scene.A_TOO}))
    monkeypatch.setattr(scene, "shared", lambda *_: 1.0)
    scene.fairness(1, 1.0, 1)
    anew = [place for place, one in enumerate(said) if one.endswith("scope host")]
    assert len(anew) == 2
    assert max(anew) < said.index(f"ip route add {scene.A_TOO} dev tmp5-as")


def test_two_stacks_names_what_the_kernel_died_of(
    bench: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stacks = bench("two_stacks.py")
    file = tmp_path / "bzImage"
    file.write_bytes(bzimage("4.14.67-mptcp"))

    def died(*_: Any, **more: Any) -> None:
        assert "oops=panic" in more["append"]
        raise machine.VmError("the machine ended before its command did: ", OOPS)

    monkeypatch.setattr(stacks, "run", died)
    monkeypatch.setattr("sys.argv", ["two_stacks.py", "--image", str(file)])
    assert stacks.main() == 3
    assert capsys.readouterr().err.splitlines() == [
        f"{file}: booting",
        "two_stacks.py: the kernel panicked: Fatal exception in interrupt",
    ]
