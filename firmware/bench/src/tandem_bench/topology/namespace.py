"""One network namespace with files of its own in /etc, kept by a waiting process and entered by its process id.

Nothing gets a name outside: no file in /run/netns or /etc/netns. The keeper waits on a pipe from us and ends with us.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tandem_bench.requirements import MachineError

_RUN_S = 30
"""For a short program; a machine on which ``ip`` takes longer cannot play a scenario."""

# Each file lies in a tmpfs that is mounted on /dev/shm only while it is bound over its place; the binding keeps it.
# A fresh /sys shows this namespace's interfaces, as programs that read /sys/class/net expect.
_KEEPER = """
set -e
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /dev/shm
number=0
while [ $# -gt 0 ]; do
    number=$((number + 1))
    printf %s "$2" > /dev/shm/$number
    chmod 644 /dev/shm/$number
    mount --bind /dev/shm/$number "$1"
    shift 2
done
umount /dev/shm
ip link set lo up
echo up
read end || :
"""


class Namespace:
    """A network and mount namespace from ``open`` to ``close``."""

    def __init__(self, name: str, files: Mapping[str, str]) -> None:
        """``files``: path in /etc → text, seen by programs entered here; the path must exist on the machine."""
        self.name = name
        self._files = dict(files)
        self._keeper: subprocess.Popen[str] | None = None

    def open(self) -> None:
        """Make it; MachineError with the failing program's line."""
        for path in self._files:
            if not Path(path).exists():
                raise MachineError(f"{path} does not exist, so no namespace can have its own; hint: touch {path}")
        pairs = [text for pair in self._files.items() for text in pair]
        self._keeper = subprocess.Popen(
            [
                "unshare",
                "--net",
                "--mount",
                "--propagation=private",
                "sh",
                "-c",
                _KEEPER,
                f"namespace-{self.name}",
                *pairs,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C at the terminal must not end it before its users
        )
        assert self._keeper.stdout is not None  # noqa: S101 - opened as pipes above
        assert self._keeper.stderr is not None  # noqa: S101
        if self._keeper.stdout.readline().strip() != "up":
            words = self._keeper.stderr.read().strip().splitlines()
            self.close()
            raise MachineError(f"cannot make the namespace {self.name}: {words[-1] if words else 'no reason given'}")

    @property
    def pid(self) -> int:
        """The keeper's process id."""
        if self._keeper is None:
            raise MachineError(f"the namespace {self.name} is not there")
        return self._keeper.pid

    @property
    def path(self) -> str:
        """A file that names the network namespace, for setns."""
        return f"/proc/{self.pid}/ns/net"

    def command(self, argv: Sequence[str | os.PathLike[str]], folder: Path | None = None) -> list[str]:
        """``argv`` so that it runs in here, by exec and under the same process id, in ``folder`` (default: the current)."""
        where = Path.cwd() if folder is None else folder
        return [
            "nsenter",
            f"--target={self.pid}",
            "--net",
            "--mount",
            "--root",  # the keeper's: entering a mount namespace leaves a chroot, where the machine is one
            f"--wdns={where}",
            "--",
            *(os.fspath(word) for word in argv),
        ]

    def run(self, argv: Sequence[str], text: str = "") -> str:
        """Run a short program in here with ``text`` on stdin; its stdout. MachineError with its last line when it fails."""
        try:
            done = subprocess.run(
                self.command(argv), input=text, capture_output=True, text=True, check=False, timeout=_RUN_S
            )
        except subprocess.TimeoutExpired:
            raise MachineError(f"{argv[0]} in {self.name}: no end within {_RUN_S} s") from None
        if done.returncode != 0:
            words = (done.stderr or done.stdout).strip().splitlines()
            raise MachineError(f"{argv[0]} in {self.name}: {words[-1] if words else f'exit status {done.returncode}'}")
        return done.stdout

    def sysctl(self, settings: Mapping[str, str]) -> None:
        """Set ``settings`` (dotted names below /proc/sys) in here."""
        lines = "".join(f"/proc/sys/{name.replace('.', '/')} {value}\n" for name, value in settings.items())
        self.run(["sh", "-ec", 'while read -r file value; do printf "%s\\n" "$value" >"$file"; done'], lines)

    def close(self) -> None:
        """Let it go; it ends when the last program in it has. Safe to call twice."""
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        keeper.kill()
        keeper.wait()
        for pipe in (keeper.stdin, keeper.stdout, keeper.stderr):
            if pipe is not None:
                pipe.close()
