"""How a download fails, over loopback: every way is a result with a reason, and what came is kept."""

import json
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from support.experiment_process import Run, parameters, server_of
from support.scripted_endpoint import Behaviour, Endpoint
from support.two_paths import await_true
from tandem.mptcp.paths import Path as ProbePath

RATE = 2e6


@pytest.fixture
def start(tmp_path):
    """Start an endpoint with a behaviour and a TCP run against it."""
    endpoints: list[Endpoint] = []

    def begin(behaviour: Behaviour, **more: Any) -> tuple[Run, Endpoint]:
        endpoints.append(Endpoint(behaviour, protocol=0, host="127.0.0.1"))
        amount = {} if "seconds" in more else {"bytes": 3_000_000}
        lone = (ProbePath("a", "lo"),)
        server = more.pop("server", None) or server_of(tmp_path, endpoints[-1], "127.0.0.1")
        wanted = parameters(server, lone, kind="tcp", path="a", **amount, **more)
        return Run("download", wanted), endpoints[-1]

    yield begin
    for endpoint in endpoints:
        endpoint.close()


@pytest.mark.parametrize(
    ("behaviour", "reason", "retry", "bytes_"),
    [
        (Behaviour(after=1_000_000, then="reset"), "reset", True, None),
        (Behaviour(after=1_000_000, then="close"), "closed after 1000000 of 3000000 bytes", True, 1_000_000),
        (Behaviour(after=1_000_000, then="stall"), "stalled: no byte for 3 s", True, 1_000_000),
        (Behaviour(status=403), 'HTTP 403 {"error": "as told"}', False, 0),
    ],
)
def test_the_network_fails(start, behaviour, reason, retry, bytes_):
    run, endpoint = start(behaviour, stall_s=3 if behaviour.then == "stall" else 60)
    line = run.end()
    assert run.process.returncode == 1
    assert line["failure"] == {"reason": reason, "retry": retry}
    assert line["result"]["bytes"] <= 1_000_000
    if bytes_ is not None:
        assert line["result"]["bytes"] == bytes_
    assert endpoint.calls[-1][0] == "DELETE"
    assert run.samples


def test_a_session_refused_is_a_failure_without_a_result(start):
    for status, retry in ((429, True), (401, False)):
        run, _ = start(Behaviour(session_status=status))
        line = run.end()
        assert line["failure"] == {"reason": f"control channel: HTTP {status}: as told", "retry": retry}
        assert line["result"] is None
        assert run.process.returncode == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_what_was_measured_is_kept(start, number):
    run, endpoint = start(Behaviour(rate=RATE), seconds=600)
    run.until(lambda sample: sample["connection"]["bytes"] > 500_000)
    run.process.send_signal(number)
    line = run.end()
    assert line["failure"] == {"reason": "stopped", "retry": False}
    assert line["result"]["bytes"] > 500_000
    assert run.process.returncode == 1
    assert endpoint.calls[-1][0] == "DELETE"


def test_told_to_stop_while_connecting(start):
    """A listener that never answers: its queue is full, so the connect hangs."""
    with socket.socket() as silent, socket.socket() as filler:
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        filler.connect(silent.getsockname())
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        server = {"control": url, "measurement": url, "token_file": "/proc/sys/kernel/ostype"}
        run = start(Behaviour(), server=server, control_timeout_s=60, whoami=False)[0]
        assert run.process.stdout is not None
        run.lines.append(json.loads(run.process.stdout.readline()))
        inode = f":{silent.getsockname()[1]:04X} 02"  # a socket in SYN_SENT towards it
        await_true(lambda: inode in Path("/proc/net/tcp").read_text(), 60, "the connect")
        run.process.send_signal(signal.SIGTERM)
        assert run.end()["failure"] == {"reason": "stopped", "retry": False}


def test_a_collector_that_is_gone_ends_the_run(start):
    run, endpoint = start(Behaviour(rate=RATE), seconds=600)
    run.until(lambda _: True)
    assert run.process.stdout is not None
    run.process.stdout.close()
    assert run.process.wait(60) == 1
    await_true(lambda: endpoint.calls[-1][0] == "DELETE", 60, "the session's end")
    assert run.process.stderr is not None
    assert "Traceback" not in run.process.stderr.read()
    run.process.stderr.close()
