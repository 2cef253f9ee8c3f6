"""Every experiment that speaks HTTP to the endpoint, against endpoints that misbehave: a recorded failure in time, never a hang."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_endpoint import BEHAVIOURS

import tandem.experiment
from tandem.experiment import base

NO_HTTP = {"reachability", "traceroute"}
"""They open no session."""

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "download": ("download", {"bytes": 200_000}),
    "download for a time": ("download", {"seconds": 1}),
    "bandwidth oneway": ("bandwidth", {"mode": "oneway", "seconds": 1}),
    "bandwidth reqresp": ("bandwidth", {"mode": "reqresp", "seconds": 1}),
    "delay oneway": ("delay", {"mode": "oneway", "min_bytes": 200_000, "max_bytes": 200_000}),
    "delay reqresp": ("delay", {"mode": "reqresp", "min_bytes": 200_000, "max_bytes": 200_000}),
    "dash": ("dash", {"seconds": 4, "attempts": 2}),
    "verdict": ("verdict", {"asks": 1, "join_wait_s": 0.2}),
    "pageload": ("pageload", {"browser": "none", "load_timeout_s": 1}),
    "latency": ("latency", {"seconds": 0.5, "load": "only", "settle_s": 0.1, "linger_s": 0.1}),
}
ENDLESS = (
    "silent",
    "drops_of_a_head",
    "drops_of_a_body",
    "an_endless_body",
    "endless_headers",
    "continues_without_end",
)
"""Those that could keep an experiment which has all its figures already."""
DEADLINE_S = 2.0
MATRIX = os.environ.get("TANDEM_HYPOTHESIS") == "all"
"""Whether each experiment meets every behaviour; otherwise a download does, and the others meet those that could keep them."""
MARGIN_S = 120.0
"""For so many processes at once on a busy machine: what hangs, hangs for ever."""
AT_ONCE = 64
"""They wait for most of their time."""

pytestmark = pytest.mark.timeout(900)


def test_no_experiment_is_left_out():
    assert {name for name, _ in VARIANTS.values()} == set(tandem.experiment.names()) - NO_HTTP


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, Any]]:
    program = [sys.executable, str(Path(__file__).with_name("hostile_endpoint.py"))]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as endpoint:
        assert endpoint.stdout is not None
        yield json.loads(endpoint.stdout.readline())
        assert endpoint.stdin is not None
        endpoint.stdin.close()


def forked(name: str, parameters: dict[str, Any], out: Path) -> int:
    """The experiment as a process, as the collector has it, without the start of another interpreter: there are hundreds."""
    experiment = importlib.import_module(f"tandem.experiment.{name}").EXPERIMENT
    given = out.with_suffix(".given")
    given.write_text(json.dumps(parameters))
    pid = os.fork()
    if pid:
        return pid
    status = 99
    try:
        for number, file, flags in ((0, given, os.O_RDONLY), (1, out, os.O_WRONLY | os.O_CREAT)):
            os.dup2(os.open(file, flags), number)
        os.dup2(os.open(out.with_suffix(".err"), os.O_WRONLY | os.O_CREAT), 2)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115  the process's own
        sys.argv = [name]
        status = base.main(experiment)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def plan(variant: str, ports: dict[str, Any], folder: Path) -> Iterator[tuple[str, str, dict[str, Any], Path]]:
    """The experiment's name, the behaviour that it meets, its parameters, and where it writes.

    The endpoint's measurement port, its control channel from the first request on, and its control channel when the session ends.
    """
    name, own = VARIANTS[variant]
    url = "http://127.0.0.1:{}".format
    servers = {}
    whole = MATRIX or variant == "download"
    for behaviour in BEHAVIOURS if whole else ENDLESS:
        bad = url(ports["measurement"][behaviour])
        if (variant, behaviour) != ("download for a time", "an_endless_body"):  # which is what it asked for
            servers[f"measurement {behaviour}"] = {"control": url(ports["fair"]), "measurement": bad}
        if whole:
            servers[f"control {behaviour}"] = {"control": url(ports["control"][behaviour]), "measurement": bad}
    cut = url(ports["measurement"]["cuts_the_body"])
    for behaviour in ENDLESS:
        servers[f"farewell {behaviour}"] = {"control": url(ports["farewell"][behaviour]), "measurement": cut}
    (folder / "token").write_text("secret")
    experiment = importlib.import_module(f"tandem.experiment.{name}").EXPERIMENT
    known = {p.name for p in experiment.parameters}
    common = {
        "run": "run-1",
        "kind": "tcp",
        "path": "a",
        "paths": [{"name": name, "interface": "lo"} for name in "ab"],
        "stall_s": 0.5,
        "connect_timeout_s": 1,
        "control_timeout_s": 0.4,
        "whoami_timeout_s": 0.5,
        "deadline_s": DEADLINE_S,
        **own,
    }
    given = {k: v for k, v in common.items() if k in known}
    for behaviour, server in servers.items():
        told = {**given, "server": {**server, "token_file": str(folder / "token")}}
        yield name, behaviour, told, folder / f"{variant} {behaviour}"


@pytest.fixture(scope="module")
def outcomes(ports: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """By variant and behaviour the last line and the status of a run against it; of a run that does not end ``hangs``."""
    folder = tmp_path_factory.mktemp("runs")
    waiting = [(variant, *one) for variant in VARIANTS for one in plan(variant, ports, folder)]
    found: dict[str, dict[str, Any]] = {variant: {} for variant in VARIANTS}
    running: dict[int, tuple[str, str, Path, float]] = {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            variant, name, behaviour, told, out = waiting.pop()
            running[forked(name, told, out)] = variant, behaviour, out, time.monotonic() + DEADLINE_S + MARGIN_S
        for pid, (variant, behaviour, out, ends_s) in list(running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del running[pid]
                lines, said = out.read_text().splitlines(), out.with_suffix(".err").read_text()
                last = json.loads(lines[-1]) if lines and "Traceback" not in said else {"type": said}
                found[variant][behaviour] = {**last, "status": os.waitstatus_to_exitcode(status)}
            elif time.monotonic() > ends_s:
                del running[pid]
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                found[variant][behaviour] = "hangs"
        time.sleep(0.02)
    return found


def failed(line: dict[str, Any]) -> bool:
    """Whether the result says that something went wrong: as a whole, in one of its phases, or of each of its paths."""
    if line["failure"] is not None or line.get("failed_phases"):
        return True
    result = line["result"] or {}
    verdicts = [one["primary"]["verdict"] for one in result.get("paths", {}).values() if "primary" in one]
    loads = [phase["load"]["error"] for phase in result.get("phases", ()) if phase.get("load")]
    return (bool(verdicts) and not {"native"} & set(verdicts)) or (bool(loads) and all(loads))


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_hostile_endpoint_is_a_recorded_failure(outcomes, variant):
    found = outcomes[variant]
    assert [b for b, line in found.items() if line == "hangs"] == []
    assert {b: line for b, line in found.items() if line["type"] != "result" or "result_faults" in line} == {}
    assert {b: (line["failure"], line["status"]) for b, line in found.items() if not failed(line)} == {}
    assert {line["status"] for line in found.values()} <= {0, 1}
    reasons = [line["failure"]["reason"] for line in found.values() if line["failure"] is not None]
    assert [reason for reason in reasons if not reason or not reason.isprintable() or len(reason) >= 400] == []
