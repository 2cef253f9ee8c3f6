"""Plans of paired runs."""

from collections import Counter
from dataclasses import replace

from good_config import good

from tandem.app.plan import plan, wish_of, wish_of_request

CONFIG = good()


def test_the_same_seed_and_number_give_the_same_order_and_primary() -> None:
    wish = wish_of(CONFIG, "sequential", "request")
    for number in range(5):
        first, second = plan(CONFIG, wish, number), plan(CONFIG, wish, number)
        assert [(r.kind, r.paths) for r in first.runs] == [(r.kind, r.paths) for r in second.runs]
        assert first.seed == second.seed


def test_order_and_primary_are_spread_over_many_pairs() -> None:
    wish = wish_of(CONFIG, "sequential", "request")
    orders: Counter[tuple[tuple[str, str], ...]] = Counter()
    primaries: Counter[str] = Counter()
    for number in range(600):
        runs = plan(CONFIG, wish, number).runs
        orders[tuple((r.kind, "-" if r.kind == "mptcp" else r.path) for r in runs)] += 1
        primaries[next(r.path for r in runs if r.kind == "mptcp")] += 1
    assert len(orders) == 6
    assert min(orders.values()) > 60
    assert min(primaries.values()) > 240


def test_requests_become_wishes() -> None:
    wish = wish_of_request(CONFIG, {"kind": "tcp", "path": "b", "bytes": 1000})
    assert (wish.pairing, wish.kind, wish.path, wish.bytes, wish.seconds) == ("single", "tcp", "b", 1000, None)
    planned = plan(CONFIG, wish, 3)
    assert [(r.kind, r.paths) for r in planned.runs] == [("tcp", ("b",))]
    wish = wish_of_request(CONFIG, {"kind": "mptcp", "path": "b", "seconds": 3})
    assert plan(CONFIG, wish, 3).runs[0].paths == ("b", "a")
    assert wish_of_request(CONFIG, {}).pairing == "sequential"
    assert wish_of_request(CONFIG, {"pairing": "simultaneous"}).seconds == 8.0


def test_a_pair_over_fewer_paths_than_there_are_has_no_run_over_the_others() -> None:
    wish = wish_of_request(CONFIG, {"paths": ["b"]})
    runs = plan(CONFIG, wish, 0).runs
    assert sorted((r.kind, r.paths) for r in runs) == [("mptcp", ("b",)), ("tcp", ("b",))]
    usual = replace(CONFIG, runs=replace(CONFIG.runs, primary="a"))
    assert wish_of_request(usual, {"paths": ["b"]}).primary == "b"
    assert wish_of_request(usual, {"paths": ["b", "a"]}).primary == "a"
