"""What may be taken a minute, and tables that no number of addresses fills."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.http.connections import ConnectionLimiter, ConnectionLimits, address_of
from tandem_server.http.rates import Buckets


class Clock:
    def __init__(self):
        self.now_s = 1000.0

    def __call__(self):
        return self.now_s


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 30)), max_size=60))
def test_never_more_than_a_minutes_worth_and_the_rate(steps):
    """Whatever is asked when: taken when allowed, it is at most the bucket and what flowed in since."""
    clock = Clock()
    bucket, taken, begun_s = Buckets(10, now=clock), 0, clock.now_s
    for wanted, pause_s in steps:
        clock.now_s += pause_s
        if wanted and bucket.wait_s("a", wanted) == 0:
            bucket.take("a", wanted)
            taken += wanted
        assert taken <= 10 + (clock.now_s - begun_s) * 10 / 60 + 1e-6
        wait_s = bucket.wait_s("a", 1)
        assert 0 <= wait_s <= 6.01


def test_after_the_wait_that_was_told_it_goes_on_and_the_table_stays_small():
    clock = Clock()
    bucket = Buckets(6, most=100, now=clock)
    for _ in range(6):
        assert bucket.wait_s("a") == 0
        bucket.take("a")
    assert (bucket.wait_s("a"), bucket.wait_s("b")) == (pytest.approx(10), 0)
    clock.now_s += 10
    assert bucket.wait_s("a") == pytest.approx(0, abs=1e-9)
    for number in range(10_000):
        bucket.take(str(number))
    assert len(bucket) == 100


def test_what_counts_as_one_address():
    assert address_of("192.0.2.1") == address_of("::ffff:192.0.2.1") == "192.0.2.1"
    assert address_of("2001:db8:1:2:3:4:5:6") == address_of("2001:db8:1:2::") == "2001:db8:1:2::/64"
    assert address_of("fe80::1%eth0") == "fe80::/64"


class Peer:
    """A connection's socket, as far as the limiter looks at it."""

    def __init__(self, number):
        self.number, self.ended = number, False

    def getsockname(self):
        return ("192.0.2.250", 443)

    def shutdown(self, _how):
        self.ended = True

    def setsockopt(self, *_):
        pass

    def close(self):
        self.ended = True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@given(
    st.lists(
        st.tuples(st.sampled_from(["come", "known", "leave"]), st.integers(0, 5), st.integers(0, 30)), max_size=150
    )
)
def test_its_counts_are_right_and_within_bounds_whatever_happens(steps):
    bounds = {"unauthenticated": 8, "unauthenticated_per_address": 3, "authenticated": 5, "authenticated_per_probe": 2}
    limiter = ConnectionLimiter(ConnectionLimits(**bounds, new_per_minute=10**6))
    here = []
    for number, (step, address, which) in enumerate(steps):
        if step == "come":
            peer = Peer(number)
            admitted = limiter.admit(peer, (f"192.0.2.{address}", 1024 + number))
            if admitted is not None:
                here.append(admitted)
        elif here:
            one = here[which % len(here)]
            if step == "known" and not one.socket.ended:
                limiter.authenticate(one, f"probe-{address}")
            elif step == "leave":
                here.remove(one)
                limiter.left(one)
                limiter.left(one)
        for one in [one for one in here if one.socket.ended]:  # as a transport does once it is aborted
            here.remove(one)
            limiter.left(one)
        strangers = [one for one in here if one.probe is None]
        assert limiter.unauthenticated == len(strangers) <= 8
        assert limiter.authenticated == len(here) - len(strangers)
        by_address = [sum(one.address == f"192.0.2.{a}" for one in strangers) for a in range(6)]
        assert max(by_address) <= 3
        assert all(limiter.find(one.ends) is one for one in here)


def test_known_ones_are_bounded_by_probe_and_in_all():
    limiter = ConnectionLimiter(ConnectionLimits(authenticated=3, authenticated_per_probe=2, new_per_minute=10**6))
    made = [limiter.admit(Peer(n), ("192.0.2.1", 1024 + n)) for n in range(5)]
    shown = [limiter.authenticate(one, probe) for one, probe in zip(made, ["1", "1", "1", "2", "3"], strict=True)]
    assert shown == [True, True, False, True, False]
    # Who is over its share takes no place of the others.
    assert (limiter.authenticated, limiter.unauthenticated) == (3, 2)
    assert not limiter.authenticate(made[3], "1")
    limiter.left(made[0])
    assert limiter.authenticate(made[2], "1")


def test_an_address_of_good_tokens_makes_room_last():
    bounds = ConnectionLimits(unauthenticated=4, unauthenticated_per_address=4, new_per_minute=10**6)
    limiter = ConnectionLimiter(bounds)
    good = limiter.admit(Peer(0), ("192.0.2.1", 1000))
    assert limiter.authenticate(good, "probe-1")
    again = limiter.admit(Peer(1), ("192.0.2.1", 1001))
    crowd = [limiter.admit(Peer(n), (f"192.0.2.{n}", 2000 + n)) for n in range(10, 30)]
    assert not again.socket.ended
    assert sum(not one.socket.ended for one in crowd) == 3
