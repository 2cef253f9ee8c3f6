"""The lines that tc is given, what holds when, and which link is chosen."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tandem_bench.link import backend, netem
from tandem_bench.link.backend import choose
from tandem_bench.link.build import LinkMissingError
from tandem_bench.link.emulator import Constant, LinkError, LinkSpec, Played
from tandem_bench.link.netem import NetemLink
from tandem_bench.link.shaping import Overrides, Values, of_timeline
from tandem_bench.link.tc import Direction

PLAIN = Values(8e6, 25_000, 500_000, 0.0)


def test_an_outage_closes_the_queue_or_throws_it_away() -> None:
    direction = Direction("ran0")
    direction.begin(PLAIN)
    closed = "tbf rate 8bit burst 1514 limit 500000"
    assert direction.change(Values(8e6, 25_000, 500_000, 0.0, outage=True)) == [
        f"qdisc change dev ran0 parent 1:1 handle 10: {closed}"
    ]
    direction.change(PLAIN)
    dropping = Values(8e6, 25_000, 500_000, 0.0, outage=True, dropped=True)
    assert direction.change(dropping) == [
        "qdisc change dev ran0 root handle 1: netem limit 100000 delay 25000us loss 100%",
        f"qdisc replace dev ran0 parent 1:1 handle 11: {closed}",  # another handle is another, empty queue
    ]
    assert direction.change(dropping) == []
    assert direction.change(PLAIN) == [
        "qdisc change dev ran0 root handle 1: netem limit 100000 delay 25000us",
        "qdisc change dev ran0 parent 1:1 handle 11: tbf rate 8000000bit burst 5000 limit 500000",
    ]


@pytest.mark.parametrize(
    ("quantity", "value"), [("rate", -1), ("loss", 1.5), ("delay_us", 1e9), ("outage", "yes"), ("queue", "x")]
)
def test_a_value_that_cannot_be_is_refused(quantity, value) -> None:
    with pytest.raises(LinkError, match=quantity):
        Overrides().set(quantity, value)


TICK = {
    "t_s": 0.0, "down_bit_per_s": 45e6, "up_bit_per_s": 1e7, "rtt_ms": 50, "buffer_down_bytes": 1000, "buffer_up_bytes": 500,
    "loss_down": 0.1, "loss_up": 0, "outage": True, "queue": "dropped",
}  # fmt: skip
HEADER = {"format": "tandem-timeline/1"}


def written(path: Path, *lines: object) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ([], ":2: no tick"),
        (["{}"], ":1: no header"),
        ([HEADER], ":2: no tick"),
        ([HEADER, "x"], ":2: not JSON"),
        ([HEADER, "[]"], ":2: no object"),
        ([HEADER, {**TICK, "rtt_ms": None}], ":2: rtt_ms is no number"),
        ([HEADER, {**TICK, "loss_up": True}], ":2: loss_up is no number"),
        ([HEADER, {**TICK, "down_bit_per_s": -1}], ":2: down_bit_per_s"),
        ([HEADER, TICK, TICK], ":3: t_s does not grow"),
    ],
)
def test_a_bad_timeline_is_named_with_its_line(tmp_path: Path, lines: list[object], what: str) -> None:
    with pytest.raises(LinkError, match=what) as error:
        of_timeline(written(tmp_path / "t.jsonl", *lines))
    assert "; mend: " in str(error.value)


def test_tun_comes_first_and_netem_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    there, lacks = {"tun": True}, {"netem": None}

    def binary() -> Path:
        if not there["tun"]:
            raise LinkMissingError("no tandem-link; mend: ./kit setup")
        return Path("/x")

    monkeypatch.setattr(backend, "find_binary", binary)
    monkeypatch.setattr(netem, "lack", lambda: lacks["netem"])
    monkeypatch.setattr("pathlib.Path.exists", lambda _self: True)
    assert [choose(wish) for wish in ("auto", "tun", "netem")] == ["tun", "tun", "netem"]
    there["tun"] = False
    assert choose("auto") == "netem"
    with pytest.raises(LinkMissingError, match=r"mend: \./kit setup"):
        choose("tun")
    lacks["netem"] = "no sch_netem; mend: another kernel"  # type: ignore[assignment]  # a dict for two tests
    with pytest.raises(LinkMissingError, match=r"no tandem-link.*nor netem: no sch_netem"):
        choose("auto")
    there["tun"] = True
    monkeypatch.setattr("pathlib.Path.exists", lambda self: str(self) != "/dev/net/tun")
    with pytest.raises(LinkMissingError, match="modprobe tun"):
        choose("tun")


def spec(offer: Constant | Played) -> LinkSpec:
    return LinkSpec("/proc/1/ns/net", "wwan0", "/proc/2/ns/net", "ran0", offer)


def test_netem_plays_no_packet_delivery_traces(tmp_path: Path) -> None:
    offer = Played(written(tmp_path / "t", HEADER, TICK), down_trace=tmp_path / "x")
    with pytest.raises(LinkError, match="mend: --link tun"):
        NetemLink(spec(offer)).start()


FAKE = """#!/bin/sh
# stands for nsenter: what is run in a namespace is written down
shift
echo "$*" >>{log}
case "$*" in
    *"-batch -"*) while read -r line; do echo "batch $line" >>{log}; [ -e {log}.refuse ] && echo "Error: refused" >&2; done ;;
    *"qdisc show"*) echo "qdisc tbf 10:" ;;
esac
exit 0
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    log = tmp_path / "log"
    program = tmp_path / "nsenter"
    program.write_text(FAKE.format(log=log))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(netem, "_WAIT_S", 60.0)
    return log


def until(what: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def batch(log: Path) -> list[str]:
    return [line.removeprefix("batch ") for line in log.read_text().splitlines() if line.startswith("batch ")]


def test_a_link_follows_its_timeline_and_what_it_is_told(log: Path, tmp_path: Path) -> None:
    ticks = [
        {**TICK, "t_s": n / 10, "outage": False, "queue": "kept", "down_bit_per_s": 1e6 * (n + 1)} for n in range(4)
    ]
    timeline = written(tmp_path / "t", HEADER, *ticks)
    with NetemLink(spec(Played(timeline, time.monotonic_ns()))) as link:
        until(lambda: any("rate 4000000bit" in line for line in batch(log)))
        link.set("down", "rate", 5e5)
        until(lambda: "rate 500000bit" in batch(log)[-1])
        link.clear("down", "rate")
        until(lambda: "rate 4000000bit" in batch(log)[-1])
        assert link.poll() is None
        assert link.pid > 0
    down = [line for line in batch(log) if " ran0 " in line and "tbf" in line]
    rates = [line.split("rate ")[1].split("bit")[0] for line in down]
    assert rates == ["1000000", "2000000", "3000000", "4000000", "500000", "4000000"]
    up = [line for line in batch(log) if " wwan0 " in line]
    assert len(up) == 2  # nothing changed there
    assert log.read_text().splitlines()[-1] == "ip link delete wwan0"
    assert link.stop() is None
    with pytest.raises(LinkError, match="does not run"):
        link.poll()


def test_a_line_that_tc_refuses_fails_the_link(log: Path) -> None:
    link = NetemLink(spec(Constant(1e6, 1e6))).start()
    assert link.poll() is None
    (log.parent / "log.refuse").touch()
    link.set("down", "rate", 2e6)
    until(lambda: link.poll() == 1)
    assert link.stop() == 1
