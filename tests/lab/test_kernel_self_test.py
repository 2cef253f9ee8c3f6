"""``tandem kernel --self-test`` on the kernel that runs here: each row as expected, one that is not is found out, and nothing is left."""

import json
import subprocess
import sys

import pytest

from support.two_paths import lab_with
from tandem.app import kernel_self_test
from tandem.app.kernel_self_test import Row, SelfTest
from tandem.mptcp.paths import Paths

pytestmark = lab_with()
NEVER_LEFT_OUT = {
    "kernel", "scheduler", "controllers", "plain TCP", "paths", "connection", "before the first byte", "bytes", "token", "counters",
    "controller", "endpoint made anew", "address lost and back", "one path", "orders of single subflows", "order of backup",
}  # fmt: skip


def namespaces() -> str:
    return subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout


def test_this_kernel_does_what_is_expected_of_it() -> None:
    before = namespaces()
    command = [sys.executable, "-m", "tandem", "kernel", "--self-test", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    told = json.loads(done.stdout)
    assert [row for row in told["rows"] if not row["ok"]] == []
    assert {row["name"] for row in told["rows"]} >= NEVER_LEFT_OUT
    assert (done.returncode, told["protocol"], namespaces()) == (0, 1, before)


def test_what_the_kernel_does_not_do_is_found_out_and_the_rest_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    before = namespaces()
    monkeypatch.setattr(kernel_self_test, "PATIENCE_S", 3.0)
    monkeypatch.setattr(Paths, "renew", lambda *_: True)  # as where off and on at once are merged
    rows: dict[str, Row] = {row.name: row for row in SelfTest().rows()}
    assert [name for name, row in rows.items() if not row.ok] == ["endpoint made anew"]
    assert rows["endpoint made anew"].found.endswith("became None")
    assert namespaces() == before
