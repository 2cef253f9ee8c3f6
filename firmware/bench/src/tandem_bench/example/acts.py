"""What the example campaign consists of: which campaign file when, under which label, over links made how. Plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
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


MOBILITY = (("home", "stationary", 2), ("walk", "walking", 2), ("ring road", "driving", 4))
"""Part of the way, its label, and how often Multipath TCP and TCP are compared there."""
SETTINGS = {"equal": Shape(), "slower": Shape(rtt_ms=200.0), "lossier": Shape(down_loss_percent=5.0)}
CELLULAR = {"wifi": WIFI, "cellular": OPERATOR}
ORDERED = {"path1": OPERATOR, "path2": WIFI}
LAST = "arrived"


def on_the_way(seed: int) -> list[Act]:
    """What is captured: Mohan's downloads in every part of the way."""
    return [Act(f"mohan-{label}", _labelled(label, count, seed), phase, label) for phase, label, count in MOBILITY]


def in_place(seed: int) -> list[Act]:
    """What is measured where the probe lies still at the end."""
    acts = [_act(name, seed) for name in ("mohan-congestion", "mohan-dash")]
    acts += [_act("adarsh-survey", seed, CELLULAR), _act("chen-sizes", seed, CELLULAR), _act("cordero", seed)]
    for where in ("controlled", "field"):
        acts += [_shaped(f"adarsh-{where}", setting, shape, seed) for setting, shape in SETTINGS.items()]
    return acts


def _labelled(label: str, count: int, seed: int) -> str:
    head, step = ((FILES / name).read_text() for name in ("mohan.toml", "mohan-step.toml"))
    steps = (step.replace("NUMBER", str(number)) for number in range(1, count + 1))
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
