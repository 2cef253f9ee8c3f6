"""What a query answers, and reading it from InfluxDB's JSON (plain or chunked)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any


class AnswerError(ValueError):
    """The database answered something that is no query result, or named an error in it."""


@dataclass(slots=True)
class Series:
    """One series of an answer. ``columns[0]`` is ``time`` (ns since 1970 UTC, int) for queries of points.

    A whole number in a float field arrives as an int: JSON does not tell them apart. ``rows`` hold None where a field is absent.
    """

    name: str
    tags: dict[str, str] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=list)

    def column(self, name: str) -> list[Any]:
        """The values of one column, by row; KeyError when there is no such column."""
        if name not in self.columns:
            raise KeyError(name)
        at = self.columns.index(name)
        return [row[at] for row in self.rows]


def read_parts(documents: Iterable[bytes]) -> Iterator[Series]:
    """Series of one statement from the JSON documents of its answer, as they come: one may be cut across documents."""
    for document in documents:
        for result in _results(document):
            if "error" in result:
                raise AnswerError(str(result["error"]))
            yield from map(_series, result.get("series", []))


def joined(parts: Iterable[Series]) -> list[Series]:
    """With each series in one piece again."""
    found: list[Series] = []
    for part in parts:
        _append(found, part)
    return found


def _results(document: bytes) -> list[dict[str, Any]]:
    try:
        answer = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise AnswerError(f"the answer is not JSON: {error}") from error
    if not isinstance(answer, dict):
        raise AnswerError("the answer is no JSON object")
    if "error" in answer:
        raise AnswerError(str(answer["error"]))
    results = answer.get("results", [])
    if not isinstance(results, list) or not all(isinstance(r, dict) for r in results):
        raise AnswerError("the answer has no list of results")
    return results


def _series(entry: object) -> Series:
    if not isinstance(entry, dict):
        raise AnswerError("a series is no JSON object")
    tags, columns, rows = entry.get("tags", {}), entry.get("columns", []), entry.get("values", [])
    if not isinstance(tags, dict) or not isinstance(columns, list) or not isinstance(rows, list):
        raise AnswerError("a series without tags, columns and values of the right kind")
    for row in rows:
        if not isinstance(row, list) or len(row) != len(columns):
            raise AnswerError("a row whose length is not that of the columns")
    return Series(
        str(entry.get("name", "")), {str(k): str(v) for k, v in tags.items()}, [str(c) for c in columns], rows
    )


def _append(found: list[Series], series: Series) -> None:
    if found and (found[-1].name, found[-1].tags, found[-1].columns) == (series.name, series.tags, series.columns):
        found[-1].rows.extend(series.rows)
    else:
        found.append(series)
