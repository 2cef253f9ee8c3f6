"""What comes from outside, whatever it is, and what is said to it."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hypothesis import strategies as st


def any_json(leaves: int = 12, keys: st.SearchStrategy | None = None) -> st.SearchStrategy:
    keys = st.text(max_size=8) if keys is None else keys
    return st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=leaves,
    )


def any_answer() -> st.SearchStrategy[bytes]:
    """Of an InfluxDB: JSON with its words as keys."""
    words = ["results", "series", "values", "columns", "tags", "name", "error", "x"]
    return any_json(20, st.sampled_from(words)).map(lambda value: json.dumps(value).encode())


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a tree of JSON: the keys that lead to it."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield (*at, key)
        yield from places(below, (*at, key))


def said(error: type[Exception], call: Callable[..., object], *args: object) -> str:
    """The text of an ``error`` that was raised; empty where none was."""
    try:
        call(*args)
    except error as raised:
        return str(raised)
    return ""


def badly_refused(error: type[Exception], call: Callable[..., object], rows: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Of rows (what is given, words of the refusal): those that are not refused, or not in one line with these words."""
    told = [(*given, words, said(error, call, *given)) for *given, words in rows]
    return [row for row in told if not row[-1] or row[-2] not in row[-1] or "\n" in row[-1]]
