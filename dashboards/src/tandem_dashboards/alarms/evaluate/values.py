"""What Grafana's server-side expressions reckon with: series, numbers, scalars, and the absence of data.

After ``pkg/expr/mathexp`` of Grafana 11. A value is a float or None (null); NaN is a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Labels = tuple[tuple[str, str], ...]
"""Sorted pairs: labels as an identity."""


def labels(tags: Mapping[str, str]) -> Labels:
    """The identity of these tags."""
    return tuple(sorted(tags.items()))


@dataclass(frozen=True)
class Series:
    """Points in the order in which the database gave them: time in ms, value."""

    labels: Labels
    points: tuple[tuple[int, float | None], ...]


@dataclass(frozen=True)
class Number:
    """One value with labels: what a reduction makes of a series."""

    labels: Labels
    value: float | None


@dataclass(frozen=True)
class Scalar:
    """A constant of an expression."""

    value: float | None

    @property
    def labels(self) -> Labels:
        """None: a constant fits every label set."""
        return ()


@dataclass(frozen=True)
class NoData:
    """A query answered without any series, or something was reckoned from such an answer."""

    @property
    def labels(self) -> Labels:
        """None."""
        return ()


Value = Series | Number | Scalar | NoData
Values = tuple[Value, ...]


class ExpressionError(ValueError):
    """Grafana would put the rule into its error state: the message says why."""
