"""A presentation as it is played: periods, their representations, and where each segment is. Times in seconds, from the start of the
presentation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes ``first`` to ``last``, both included, as HTTP counts them."""

    first: int
    last: int

    @property
    def length(self) -> int:
        """How many bytes."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Resource:
    """What one request fetches. ``range`` None: the whole of ``url``, which is absolute."""

    url: str
    range: ByteRange | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """One media segment."""

    start_s: float
    duration_s: float
    media: Resource


@dataclass(frozen=True, slots=True)
class Representation:
    """One quality. ``index``: a segment index (sidx) that must be read first, and then ``segments`` is empty (``sidx.with_index``).
    ``width``, ``height``, ``frame_rate``, ``codecs``: None where the MPD does not say."""

    id: str
    bandwidth_bit_per_s: int
    width: int | None
    height: int | None
    frame_rate: float | None
    codecs: str | None
    initialization: Resource | None
    segments: tuple[Segment, ...]
    index: Resource | None = None


@dataclass(frozen=True, slots=True)
class Adaptation:
    """Representations of the same content, by rising bandwidth. ``content``: video, audio, text …, None where it is not said."""

    content: str | None
    representations: tuple[Representation, ...]


@dataclass(frozen=True, slots=True)
class Period:
    """``duration_s`` None: the last one of a presentation that does not say how long it is."""

    start_s: float
    duration_s: float | None
    adaptations: tuple[Adaptation, ...]

    @property
    def video(self) -> Adaptation:
        """What is played: the first adaptation of video, or the first that does not say what it is, or the first."""
        for content in ("video", None):
            for adaptation in self.adaptations:
                if adaptation.content == content:
                    return adaptation
        return self.adaptations[0]


@dataclass(frozen=True, slots=True)
class Presentation:
    """At least one period with at least one adaptation with at least one representation."""

    duration_s: float | None
    periods: tuple[Period, ...]
