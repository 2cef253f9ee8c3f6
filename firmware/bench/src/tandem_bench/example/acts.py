"""What the example campaign consists of: which campaign file when, under which label, over links made how. Plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

FILES = Path(__file__).with_name("campaigns")
OPERATOR, WIFI = "a", "wifi"
"""The paths of the bench that play cellular and Wi-Fi, and path 1 and path 2."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the bench does to Wi-Fi's link, beside its own: added round-trip time in ms, loss of what comes in percent."""

    rtt_ms: float = 0.0
    down_loss_percent: float = 0.0


@dataclass(frozen=True, slots=True)
class Act:
    """One campaign, from its text on. ``phase``: it is not begun before this part of the way. ``paths``: by role."""

    name: str
    text: str
    phase: str
    label: str = ""
    paths: dict[str, str] = field(default_factory=dict)
    shape: Shape | None = None


TOGETHER, LONG, IN_TURN = ("simultaneous", "4"), ("simultaneous", "11"), ("sequential", "2")
"""How Multipath TCP and TCP are compared, and for how many seconds: at the same time, since the radio changes (longer where it does so
often, so that some changes are apart from others); or one after the other, since a capture then holds one run's packets alone."""
MOBILITY = (
    ("home", "stationary", (IN_TURN, TOGETHER)),
    ("walk", "walking", (LONG, IN_TURN)),
    ("ring road", "driving", (LONG, LONG, LONG, IN_TURN)),
)
"""Part of the way, its label, and the comparisons there."""
SETTINGS = {"equal": Shape(), "slower": Shape(rtt_ms=100.0), "lossier": Shape(down_loss_percent=5.0)}
BUSY = Shape(rtt_ms=10.0, down_loss_percent=4.0)
"""A hot spot that others use (Chen et al., Table 4: 3 to 5 % lost)."""
CELLULAR = {"wifi": WIFI, "cellular": OPERATOR}
ORDERED = {"path1": OPERATOR, "path2": WIFI}
LAST = "arrived"


def on_the_way(seed: int) -> list[Act]:
    """What is captured: Mohan's downloads in every part of the way."""
    return [Act(f"mohan-{label}", _labelled(label, pairs, seed), phase, label) for phase, label, pairs in MOBILITY]


def in_place(seed: int) -> list[Act]:
    """What is measured where the probe lies still at the end."""
    acts = [_act(name, seed) for name in ("mohan-congestion", "mohan-dash")]
    acts += [_act(name, seed, CELLULAR) for name in ("adarsh-survey", "chen-sizes")]
    acts += [
        replace(_act("chen-hotspot", seed, CELLULAR), shape=BUSY),
        _act("cordero", seed),
        _act("cordero-remote", seed),
    ]
    for where in ("controlled", "field"):
        acts += [_shaped(f"adarsh-{where}", setting, shape, seed) for setting, shape in SETTINGS.items()]
    return acts


def _labelled(label: str, pairs: Sequence[tuple[str, str]], seed: int) -> str:
    head, step = ((FILES / name).read_text() for name in ("mohan.toml", "mohan-step.toml"))
    steps = (
        _filled(step, NUMBER=str(number), PAIRING=pairing, SECONDS=seconds)
        for number, (pairing, seconds) in enumerate(pairs, 1)
    )
    return _filled(head + "".join(steps), LABEL=label, SEED=str(seed))


def _act(name: str, seed: int, paths: dict[str, str] | None = None) -> Act:
    return Act(name, _filled((FILES / f"{name}.toml").read_text(), SEED=str(seed)), LAST, paths=paths or {})


def _shaped(name: str, setting: str, shape: Shape, seed: int) -> Act:
    text = _filled((FILES / f"{name}.toml").read_text(), SETTING=setting, SEED=str(seed))
    return Act(f"{name}-{setting}", text, LAST, paths=ORDERED, shape=shape)


def _filled(text: str, **words: str) -> str:
    """Comments say what the words in capitals are; they are filled in as well, which harms nothing."""
    for word, value in words.items():
        text = text.replace(word, value)
    return text
