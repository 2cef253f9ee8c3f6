"""What a result was declared to hold, against what it holds."""

from tandem.experiment.parameters import Parameter
from tandem.experiment.results import BYTES_BY_PATH, FIGURES, bytes_by_path, faults

DECLARED = (*FIGURES, BYTES_BY_PATH, Parameter("fallback", "bool", "whether"), Parameter("steps", "list", "each"))


def test_what_was_declared_has_no_fault():
    assert faults(DECLARED, {"bytes": 3, "duration_s": 1, "fallback": False, "bytes_by_path": {}, "steps": []}) == []
    assert faults(DECLARED, {"bytes": None}) == [], "what could not be measured may be absent or null"


def test_undeclared_keys_and_other_kinds_are_named():
    assert faults(DECLARED, {"colour": 1, "bytes": 1.5, "fallback": 1, "duration_s": True, "steps": {}}) == [
        "'colour' is not declared",
        "'bytes': float, declared as int",
        "'fallback': int, declared as bool",
        "'duration_s': bool, declared as float",
        "'steps': dict, declared as list",
    ]


def test_bytes_are_summed_by_path_and_the_unknown_stays_unknown():
    counted = [("a", 10, 1), ("a", 5, None), ("b", None, None), (None, 7, 7)]
    assert bytes_by_path(counted) == {
        "a": {"received": 15, "sent": 1},
        "b": {"received": None, "sent": None},
    }
