"""Records of boots that have no time yet are passed over, and hold up no others."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tandem.schema.record import Record
from tandem.spool import Spool
from tandem.spool.passing import between

RANGES = st.lists(st.integers(1, 40), unique=True, max_size=8).map(sorted).map(
    lambda ends: [(a, b) for a, b in zip(ends[::2], ends[1::2], strict=False)] + ([(ends[-1], None)] if len(ends) % 2 else [])
)  # fmt: skip


@given(RANGES)
def test_what_is_left_is_what_is_not_passed_over(passing: list[tuple[int, int | None]]) -> None:
    def inside(n: int, ranges: list[tuple[int, int | None]]) -> bool:
        return any(low <= n and (high is None or n <= high) for low, high in ranges)

    left = between(passing)
    assert all(inside(n, passing) != inside(n, left) for n in range(60))


def records(count: int) -> list[Record]:
    return [Record.make("radio", {"path": "a"}, {"eci": n}, n) for n in range(count)]


def test_both_ends_pass_over_whole_boots(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "boot-1")
    for _ in range(3):
        spool.append(records(10))
    held = [(11, 20), (31, None)]
    spool.append(records(5))
    batch = spool.take(100, passing=held)
    assert sorted(item.seq for item in batch.items) == [*range(1, 11), *range(21, 31)]
    assert spool.take(100, passing=held) is None
    spool.acknowledge(batch)
    rest = spool.take(100)
    assert sorted(item.seq for item in rest.items) == [*range(11, 21), *range(31, 36)]
    spool.release(rest)
    assert spool.take(100, newest_only=True, passing=[(1, None)]) is None
    spool.close()
