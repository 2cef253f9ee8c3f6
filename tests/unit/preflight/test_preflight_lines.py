"""Which failed line is the cause of which; what a sheet for the box may not hold."""

import ipaddress
import re

from hypothesis import given
from hypothesis import strategies as st

from tandem.app.preflight.lines import TITLES, Line, fails, passes, ready, said, settled


def states(lines: list[Line]) -> dict[str, str]:
    return {line.label: line.state for line in lines}


def test_what_fails_because_of_another_line_is_told_as_that() -> None:
    lines = settled(
        [
            fails("data", "no", "?", "a", [[("path", "a")], [("server", None)]]),
            fails("path", "no", "?", "a", [[("registered", "a")]]),
            fails("registered", "no", "antenna", "a"),
            passes("server", "yes"),
        ]
    )
    assert states(lines) == {"registered:a": "fail", "path:a": "follows", "data:a": "follows", "server": "pass"}
    assert {line.label: line.because for line in lines if line.because} == {
        "path:a": (("registered", "a"),),
        "data:a": (("path", "a"),),
    }
    assert [line.label for line in lines] == ["registered:a", "path:a", "data:a", "server"]


def test_two_lines_that_blame_each_other_both_fail() -> None:
    lines = settled(
        [fails("clock", "no", "?", None, [[("server", None)]]), fails("server", "no", "?", None, [[("clock", None)]])]
    )
    assert states(lines) == {"clock": "fail", "server": "fail"}


def test_an_accepted_line_and_what_follows_from_it_hold_nothing_up() -> None:
    lines = [fails("path", "no", "?", "a"), fails("data", "no", "?", "a", [[("path", "a")]]), passes("server", "yes")]
    assert not ready(settled(lines))
    accepted = settled(lines, ["path:a"])
    assert states(accepted) == {"path:a": "accepted", "data:a": "accepted", "server": "pass"}
    assert ready(accepted)
    assert not ready(settled([*lines, fails("gps", "no", "?")], ["path:a"]))


LABELS = st.tuples(st.sampled_from(list(TITLES)), st.sampled_from([None, "a", "b"]))


@given(st.dictionaries(LABELS, st.lists(st.lists(LABELS, max_size=3), max_size=3), min_size=1, max_size=12))
def test_whatever_blames_whatever_something_is_left_to_mend(causes: dict) -> None:
    lines = settled([fails(name, "no", "mend it", path, groups) for (name, path), groups in causes.items()])
    assert len(lines) == len(causes)
    assert any(line.state == "fail" for line in lines)
    for line in lines:
        assert (line.state == "follows") == bool(line.because)
        assert set(line.because) <= set(causes)


@given(
    st.text(max_size=60),
    st.one_of(
        st.ip_addresses(v=4),
        st.ip_addresses(v=6),
        st.from_regex(r"[0-9]{14,20}", fullmatch=True),
        st.from_regex(r"89[0-9]{16,18}", fullmatch=True),
    ),
    st.sampled_from([" ", ", ", " (", ": "]),
)
def test_no_address_and_no_identity_is_said(words: str, identity: object, between: str) -> None:
    shown = said(f"{words}{between}{identity} and more")
    assert str(identity) not in shown or len(str(identity)) < 5  # "::" may stand in any text
    assert re.search(r"[0-9]{14,}", shown) is None
    for word in re.split(r"[\s,()]+", shown):
        try:
            assert ipaddress.ip_address(word).version == 6
            assert len(word) < 5
        except ValueError:
            continue


def test_times_versions_and_places_stay_as_they_are() -> None:
    for text in (
        "EC25 (quectel) at USB 1-1.2:1.3",
        "since 12:30:05",
        "6.12.34+rpt-rpi-v8, 0.1.0",
        "/dev/ttyUSB2",
        "http://x:8443",
    ):
        assert said(text) == text


def test_what_servers_say_is_one_line_that_a_terminal_does_not_obey() -> None:
    assert said("a\n\x1b[31mb\x00  c") == "a [31mb c"
    assert len(said("x" * 10_000)) == 300
