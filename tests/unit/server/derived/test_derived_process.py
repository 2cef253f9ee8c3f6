"""The process beside the gateway: it makes the series, is nice, and leaves when it is told to or the gateway is gone."""

import os
import time
from pathlib import Path

import pytest
from riding import Riding, S

from tandem_server.cli.background import NICE, Beside
from tandem_server.store.private import account_password

MODULE = "tandem_server.cli.background"


@pytest.fixture
def config(tmp_path, private_influx):
    (tmp_path / "password").write_text(account_password(private_influx.folder))
    file = tmp_path / "server.toml"
    file.write_text(
        f'[store]\nkind = "running"\nurl = "{private_influx.url}"\nuser = "tandem"\npassword_file = "password"\n'
        '[registry]\nfile = "registry.sqlite"\n'
    )
    return file


def processes_of(config):
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if MODULE in words and str(config) in words:
            found.append(int(folder.name))
    return found


def polls_in(store):
    return sum(series.rows[0][1] for series in store.query('SELECT sum("polls") FROM "hour"."coverage_day"'))


def until(condition):
    while not (found := condition()):
        time.sleep(0.05)
    return found


def test_it_makes_the_hour_that_goes_on_and_ends_with_its_context(config, store):
    ride, now = Riding(), time.time_ns()
    for t in range(now // S - 60, now // S):
        ride.say(t * S, "radio", {"path": "a", "operator": "op-a", "rat": "LTE"}, {"state": "idle", "rsrp_dbm": -90.0})
    assert store.write(ride.lines) == []
    with Beside("derived", config, after_s=0.01):
        until(lambda: polls_in(store) == 60)
        (process,) = processes_of(config)
        assert os.getpriority(os.PRIO_PROCESS, process) == NICE
        # One that died is started again.
        os.kill(process, 9)
        until(lambda: [p for p in processes_of(config) if p != process])
    assert processes_of(config) == []
