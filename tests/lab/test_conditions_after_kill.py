"""A collector killed in the middle of a run under conditions: the next start puts sysctls back and takes the shaping down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.two_paths import Lab, await_true, lab, lab_with
from tandem import shaping as kernel
from tandem.shaping import Shape

pytestmark = lab_with()
REPOSITORY = Path(__file__).resolve().parents[2]
SACK = "net.ipv4.tcp_sack"

CONFIG = """
[probe]
name = "probe-1"
[server]
gateway = "https://203.0.113.10:9"
control = "https://203.0.113.10:9"
measurement = "http://203.0.113.10:9"
token_file = "token"
[[path]]
name = "a"
interface = "tmp5-a"
gateway = "10.71.1.2"
[[path]]
name = "b"
interface = "tmp5-b"
gateway = "10.71.2.2"
[clock]
source = "system"
[capture]
enabled = false
[export]
drain_s = 0
[experiments]
folder = "{own}"
"""


class Probe:
    """The collector's programs in the lab's probe namespace; what still runs at the end is ended."""

    def __init__(self, two: Lab, folder: Path) -> None:
        self._two, self.folder, self.programs = two, folder, ExitStack()
        (folder / "token").write_text("secret")
        own = REPOSITORY / "collector/examples/experiments"
        (folder / "config.toml").write_text(CONFIG.replace("{own}", str(own)))

    def start(self, *words: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "collector/src")}
        argv = [*self._two.probe.enter, sys.executable, "-m", "tandem", *words]
        argv += ["--config", str(self.folder / "config.toml")]
        log = self.programs.enter_context((self.folder / f"{words[0]}.log").open("a"))
        program = subprocess.Popen(argv, stdout=log, stderr=log, text=True, env=environment)
        self.programs.callback(program.wait, 20)
        self.programs.callback(program.kill)
        return program

    def shown(self) -> str:
        return self._two.probe.run("tc qdisc show | grep -v noqueue || true; ip -br link | grep tshape || true")

    def sack(self) -> str:
        return self._two.probe.run(f"sysctl -n {SACK}").strip()


@pytest.fixture
def probe(tmp_path: Path) -> Iterator[Probe]:
    with lab(upwards=False) as two:
        lack = two.probe.inside(lambda: kernel.missing(Shape(down_bit_per_s=1e6, up_bit_per_s=1e6)))
        if lack is not None:
            pytest.skip(lack)
        made = Probe(two, tmp_path)
        with made.programs:
            yield made


def test_the_next_start_undoes_what_a_killed_collector_left(probe: Probe) -> None:
    socket = probe.folder / "status.sock"
    before = probe.sack()
    first = probe.start("run")
    await_true(socket.exists, 120, "the collector answers")
    shape = ("--shape", "a:down_bit_per_s=1e6,up_bit_per_s=1e6", "--sysctl", f"{SACK}={1 - int(before)}")
    probe.start("experiment", "run", "handshake", "--set", "times=1000", "--set", "pause_s=60", *shape)
    await_true(lambda: probe.shown().count("htb") == 2 and probe.sack() != before, 120, "the conditions are made")
    first.send_signal(signal.SIGKILL)
    first.wait(60)
    assert "tshape" in probe.shown()
    again = probe.start("run")
    await_true(lambda: probe.shown() == "" and probe.sack() == before, 120, "all is as before")
    again.terminate()
    assert again.wait(120) == 0
    log = (probe.folder / "run.log").read_text()
    assert "tmp5-a: shaping taken down" in log
    assert f"sysctl {SACK} = {before}" in log
