"""What a modem's control socket may be asked: faults, and the words that its process knows."""

from __future__ import annotations

import pytest

from tandem_bench.modem.faults import Fault, FaultError
from tandem_bench.modem.surroundings import obey


def test_a_known_word_is_done_and_is_no_fault() -> None:
    done: list[str] = []
    obey({"usb": "plug"}, lambda _fault: pytest.fail("no fault"), {"usb": {"plug": lambda: done.append("plug")}})
    assert done == ["plug"]


def test_what_is_no_known_wish_is_a_fault() -> None:
    played: list[Fault] = []
    obey({"fault": "hang", "seconds": 2.0}, played.append, {"usb": {"plug": lambda: pytest.fail("not asked")}})
    assert [(fault.kind, fault.seconds) for fault in played] == [("hang", 2.0)]


@pytest.mark.parametrize("word", ["sideways", "", None, 1, ["plug"], {"plug": 1}])
def test_an_unknown_word_is_refused_with_the_known_ones(word: object) -> None:
    with pytest.raises(FaultError, match=r"^usb is .*; known: plug, unplug$"):
        obey({"usb": word}, lambda _fault: None, {"usb": {"plug": lambda: None, "unplug": lambda: None}})


@pytest.mark.parametrize("wish", [None, 1, "usb", [], {}, {"usb": "plug", "rrc": "idle"}, {"fan": "on"}])
def test_anything_else_is_refused(wish: object) -> None:
    with pytest.raises(FaultError):
        obey(wish, lambda _fault: None, {"usb": {"plug": lambda: None}})
