"""A link by the kernel's own queueing disciplines: a veth pair, netem and tbf at both ends, changed as the timeline says."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import IO, Self

from tandem_bench.link.emulator import Constant, LinkError, LinkSpec, Played, Quantity, Scope
from tandem_bench.link.shaping import Overrides, Tick, Values, of_constant, of_timeline
from tandem_bench.link.tc import Direction

_TRY = """set -e
ip link set lo up
tc qdisc add dev lo root handle 1: netem delay 1ms loss 1%
tc qdisc add dev lo parent 1:1 handle 10: tbf rate 1mbit burst 1600 limit 3000
"""
_WAIT_S = 10.0


def lack() -> str | None:
    """Why this machine cannot shape with netem, one line with the mend; None when it can. Tried in a namespace of its own: needs root."""
    if shutil.which("tc") is None:
        return "tc not found; hint: apt-get install iproute2"
    tried = subprocess.run(
        ["unshare", "--net", "sh", "-c", _TRY], capture_output=True, text=True, timeout=_WAIT_S, check=False
    )
    if tried.returncode == 0:
        return None
    words = tried.stderr.strip().splitlines()
    return f"netem and tbf: {words[-1] if words else 'refused'}; hint: a kernel with sch_netem and sch_tbf (modprobe sch_netem), as root"


class NetemLink:
    """As ``LinkProcess``, by other means (docs/contributing/bench.md). ``start`` to ``stop``; as a context manager both."""

    def __init__(self, spec: LinkSpec) -> None:
        self.spec = spec
        self._ticks: list[Tick] = []
        self._overrides = {"down": Overrides(), "up": Overrides()}
        # The probe's end sends up, the operator's down.
        self._ends = {"up": (spec.a_netns, spec.a_name), "down": (spec.b_netns, spec.b_name)}
        self._directions = {side: Direction(name) for side, (_, name) in self._ends.items()}
        self._tc: dict[str, subprocess.Popen[bytes]] = {}
        self._words: dict[str, list[str]] = {"up": [], "down": []}
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._current: Tick | None = None
        self._made = False
        self._failed: int | None = None

    @property
    def pid(self) -> int:
        """Of tc at the probe's end; LinkError when it does not run."""
        if not self._tc:
            raise LinkError("the link does not run")
        return self._tc["up"].pid

    def start(self) -> Self:
        """Make the pair and shape it. LinkError with the program's own line when that fails."""
        offer = self.spec.offer
        if isinstance(offer, Played) and (offer.down_trace or offer.up_trace):
            raise LinkError("netem cannot play packet-delivery traces; hint: --link tun")
        self._ticks = of_constant(offer) if isinstance(offer, Constant) else of_timeline(offer.timeline)
        epoch_ns = offer.epoch_ns if isinstance(offer, Played) and offer.epoch_ns is not None else time.monotonic_ns()
        try:
            self._make()
            for side, (netns, _) in self._ends.items():
                # One tc an end reads lines as long as the link lives: starting one at each change would cost more than the change.
                tc = self._tc[side] = subprocess.Popen(
                    ["nsenter", f"--net={netns}", "tc", "-force", "-batch", "-"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                )
                if tc.stderr is not None:
                    self._thread(f"tc {side}", self._listen, side, tc.stderr)
            self._current = self._ticks[0]
            for side, direction in self._directions.items():
                self._tell(side, direction.begin(self._values(side, self._current)))
            self._await_shaped()
        except BaseException:
            self.stop()
            raise
        self._thread("netem timeline", self._play, epoch_ns)
        return self

    def set(self, scope: Scope, quantity: Quantity, value: float | str) -> None:
        """Let ``quantity`` be ``value`` until it is cleared, whatever the timeline says."""
        for side in self._sides(scope):
            self._overrides[side].set(quantity, value)
        self._apply()

    def clear(self, scope: Scope, quantity: Quantity) -> None:
        """Let the timeline speak again."""
        for side in self._sides(scope):
            self._overrides[side].clear(quantity)
        self._apply()

    def poll(self) -> int | None:
        """Exit status when shaping has ended by itself, or tc refused a line (1); else None."""
        if not self._tc:
            raise LinkError("the link does not run")
        return next((status for tc in self._tc.values() if (status := tc.poll()) is not None), self._failed)

    def stop(self) -> int | None:
        """End it and its devices; 0, or 1 when it failed before; None when it was never started. Safe to call twice."""
        if not self._made and not self._tc:
            return None
        failed = self._failed or 0
        self._wake.set()
        for tc in self._tc.values():
            if tc.stdin is not None:
                with contextlib.suppress(OSError):
                    tc.stdin.close()
            try:
                tc.wait(_WAIT_S)
            except subprocess.TimeoutExpired:
                tc.kill()
                tc.wait()
        for thread in self._threads:
            thread.join(_WAIT_S)
        for tc in self._tc.values():
            if tc.stderr is not None:
                tc.stderr.close()
        self._tc.clear()
        if self._made:
            with contextlib.suppress(LinkError):  # its namespace may be gone, and the pair with it
                self._run(self.spec.a_netns, ["ip", "link", "delete", self.spec.a_name])
            self._made = False
        return failed

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- the pair --------------------------------------------------------------------------------------------------------

    def _make(self) -> None:
        spec = self.spec
        pair = f"ip link add {spec.a_name} mtu {spec.mtu} type veth peer name {spec.b_name} mtu {spec.mtu} netns {spec.b_netns}"
        self._run(spec.a_netns, pair.split())
        self._made = True
        for netns, name in self._ends.values():
            # Packets as they would be on the air: one by one, so that loss and queue are of packets and not of bundles.
            self._run(netns, ["ip", "link", "set", name, "gso_max_segs", "1", "up"])

    @staticmethod
    def _run(netns: str, argv: list[str]) -> str:
        # Only the network namespace: /proc must stay that of the caller, whose process ids the files name.
        done = subprocess.run(
            ["nsenter", f"--net={netns}", *argv], capture_output=True, text=True, timeout=_WAIT_S, check=False
        )
        if done.returncode != 0:
            words = done.stderr.strip().splitlines()
            raise LinkError(f"netem link: {words[-1] if words else f'{argv[0]} failed with status {done.returncode}'}")
        return done.stdout

    def _await_shaped(self) -> None:
        """Until both queueing disciplines stand at both ends."""
        deadline_s = time.monotonic() + _WAIT_S
        for side, (netns, name) in self._ends.items():
            while "tbf" not in self._run(netns, ["tc", "qdisc", "show", "dev", name]):
                if self._words[side] or time.monotonic() > deadline_s:
                    raise LinkError(f"netem link: {(self._words[side] or ['tc does not answer'])[0]}")
                time.sleep(0.01)
        if self._failed is not None:
            raise LinkError(f"netem link: {[*self._words['up'], *self._words['down']][0]}")

    # --- shaping ---------------------------------------------------------------------------------------------------------

    def _thread(self, name: str, run: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=run, args=args, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    @staticmethod
    def _sides(scope: Scope) -> tuple[str, ...]:
        return ("down", "up") if scope == "both" else (scope,)

    def _values(self, side: str, tick: Tick) -> Values:
        return self._overrides[side].over(tick.down if side == "down" else tick.up)

    def _apply(self) -> None:
        with self._lock:
            if self._current is None:
                raise LinkError("the link does not run")
            for side, direction in self._directions.items():
                self._tell(side, direction.change(self._values(side, self._current)))

    def _tell(self, side: str, lines: list[str]) -> None:
        stdin = self._tc[side].stdin
        if not lines or stdin is None:
            return
        try:
            stdin.write(("\n".join(lines) + "\n").encode())
            stdin.flush()
        except OSError:
            raise LinkError(f"netem link: tc has ended: {(self._words[side] or ['no reason given'])[-1]}") from None

    def _listen(self, side: str, words: IO[bytes]) -> None:
        """tc speaks only when it refuses a line."""
        for line in words:
            self._words[side].append(line.decode(errors="replace").strip())
            self._failed = 1

    def _play(self, epoch_ns: int) -> None:
        for tick in self._ticks[1:]:
            if self._wake.wait(max(0.0, (epoch_ns + tick.t_s * 1e9 - time.monotonic_ns()) / 1e9)):
                return
            self._current = tick
            try:
                self._apply()
            except LinkError:
                self._failed = 1
                return
