"""Stored pages from the real endpoint over two paths in namespaces, in a real Chromium and by the object graph."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.experiment_process import Run, parameters, run
from support.standalone_endpoint import SOURCES, lone_endpoint
from support.two_paths import SERVER, await_true, lab, lab_with, up
from tandem.devtools import find

BROWSER = find()
pytestmark = lab_with()
in_a_browser = pytest.mark.skipif(
    BROWSER is None,
    reason="no Chromium: package chromium-headless-shell or chromium, or TANDEM_CHROMIUM (Ubuntu has it as a snap only)",
)
OBJECTS = 24


def tandem_server(folder: Path, *args: str) -> None:
    argv = [sys.executable, "-m", "tandem_server", *args, "--config", str(folder / "server.toml")]
    subprocess.run(argv, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": SOURCES}, timeout=240)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Both paths up; the endpoint with one https page and one http."""
    folder = tmp_path_factory.mktemp("endpoint")
    with lab() as made:
        for space in (made.server, made.probe):
            space.run("echo reno >/proc/sys/net/ipv4/tcp_congestion_control")
        up(made)
        with lone_endpoint(made.server, SERVER, folder) as server:
            size = ["--objects", str(OBJECTS), "--bytes", "1000000", "--origins", "3"]
            tandem_server(folder, "page", "build", "--name", "secure", *size)
            tandem_server(folder, "page", "build", "--name", "plain", "--scheme", "http", *size)
            yield made, server


def asked(server, **more):
    return parameters(server, **{"path": "a", "pages": "secure,plain", **more})


def browsers(made) -> list[str]:
    """What runs of Chromium in the probe's namespace."""
    inside = Path(f"/proc/{made.probe.pid}/ns/net").stat().st_ino
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "ns/net").stat().st_ino == inside:
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # gone meanwhile
    return [line for line in found if "chrom" in line]


@in_a_browser
@pytest.mark.parametrize(("kind", "path", "used"), [("mptcp", "b", {"a", "b"}), ("tcp", "b", {"b"})])
def test_a_browser_and_the_graph_load_a_page_over_their_paths(two, kind, path, used):
    made, server = two
    told = run(made, "pageload", asked(server, kind=kind, path=path, browser="both", congestion_control="cubic"))
    assert told["failure"] is None
    assert told["environment"]["congestion_control_asked"] == "cubic"  # and the server here has Reno by itself
    assert "result_faults" not in told
    result = told["result"]
    rows = {(row["page"], row["by"]): row for row in result["loads"]}
    assert set(rows) == {(page, by) for page in ("secure", "plain") for by in ("browser", "graph")}
    for (page, by), row in rows.items():
        assert row["failure"] is None
        assert (row["objects"], row["objects_failed"], row["objects_missed"]) == (OBJECTS, 0, 0)
        assert row["bytes"] > 990_000
        assert row["tls"] is (page == "secure")
        assert set(row["shares"]) <= used
        assert (row["page_load_time_ms"] if by == "browser" else row["object_load_time_ms"]) > 0
    assert all(row["first_contentful_paint_ms"] for row in result["loads"] if row["by"] == "browser")
    assert (result["page_load_time_ms"]["n"], result["object_load_time_ms"]["n"]) == (2, 2)
    assert {s["path"] for s in result["subflows"]} == set(result["bytes_by_path"]) == used
    if kind == "mptcp":
        assert min(s["share"] for s in result["subflows"]) > 0
        assert not result["fallback"]
    assert sum(s["bytes"] for s in result["subflows"]) >= result["bytes"] > 4 * 990_000
    assert result["browser"]
    assert told["environment"]["browser_sandbox"] is (os.geteuid() != 0)
    assert [line["name"] for line in told["lines"] if line["type"] == "phase"] == ["load"] * 4
    assert browsers(made) == []


@in_a_browser
def test_a_browser_is_gone_when_the_run_is_stopped_or_dies(two):
    made, server = two
    for number, status in ((signal.SIGTERM, 1), (signal.SIGKILL, -signal.SIGKILL)):
        wanted = asked(server, kind="tcp", browser="chromium", repetitions=200)
        process = Run("pageload", wanted, made.probe.enter).process
        await_true(lambda: browsers(made), 60, "a browser")
        if number == signal.SIGKILL:
            process.kill()  # nsenter has executed it in its own place
        else:
            process.send_signal(number)
        out, err = process.communicate(timeout=240)
        assert process.returncode == status, err
        if number == signal.SIGTERM:
            assert '"reason":"stopped"' in out.splitlines()[-1]
        await_true(lambda: not browsers(made), 60, f"no browser after {number.name}")


BLACK = (
    "add table inet black; add chain inet black out { type filter hook output priority 0; };"
    " add rule inet black out tcp sport 8480 drop"
)


@pytest.mark.parametrize("browser", ["none", pytest.param("chromium", marks=in_a_browser)])
def test_a_path_that_goes_black_within_a_load_is_a_failure_in_time(two, browser):
    made, server = two
    timeout_s = 2 if browser == "none" else 6
    more = {"kind": "tcp", "browser": browser, "pages": "plain", "repetitions": 200, "load_timeout_s": timeout_s}
    running = Run("pageload", asked(server, **more), made.probe.enter)
    try:
        running.until(lambda load: load["failure"] is None, "load")
        made.server.run(f"nft '{BLACK}'")
        black = running.until(lambda load: load["failure"] is not None, "load")
        running.process.send_signal(signal.SIGTERM)
        last = running.end()
    finally:
        running.process.kill()
        made.server.run("nft destroy table inet black 2>/dev/null || nft delete table inet black")
    assert any(why in black["failure"] for why in ("in time", "timeout")), black
    assert last["failure"] == {"reason": "stopped", "retry": False}
    assert last["result"]["loads_failed"] >= 1
    assert browsers(made) == []
