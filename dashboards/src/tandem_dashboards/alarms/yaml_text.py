"""YAML as provisioning files are written: blocks, two spaces, every text in double quotes (as JSON has it), long ones as blocks."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

Node = str | int | float | bool | None | Mapping[str, "Node"] | Sequence["Node"]


def to_yaml(document: Mapping[str, Node], comment: str = "") -> str:
    """The whole file; ``comment`` at its head, a line each. ValueError for what YAML cannot keep."""
    head = [f"# {line}".rstrip() for line in comment.splitlines()]
    return "\n".join([*head, *_mapping(document, 0)]) + "\n"


def _mapping(node: Mapping[str, Node], depth: int) -> list[str]:
    lines: list[str] = []
    for key, value in node.items():
        lines += _entry("  " * depth + f"{_key(key)}:", value, depth + 1)
    return lines


def _entry(head: str, value: Node, depth: int) -> list[str]:
    if isinstance(value, str):
        if "\n" in value.rstrip("\n"):
            mark = "|" if value.endswith("\n") else "|-"
            return [f"{head} {mark}", *(("  " * depth + line).rstrip() for line in value.rstrip("\n").split("\n"))]
        return [f"{head} {_text(value)}"]
    if isinstance(value, Mapping):
        return [head, *_mapping(value, depth)] if value else [f"{head} {{}}"]
    if isinstance(value, Sequence):
        if not value:
            return [f"{head} []"]
        lines = [head]
        for item in value:
            lines += _item(item, depth)
        return lines
    return [f"{head} {_plain(value)}"]


def _item(item: Node, depth: int) -> list[str]:
    lead = "  " * depth + "- "
    if isinstance(item, Mapping) and item:
        first, *rest = _mapping(item, depth + 1)
        return [lead + first[len(lead) :], *rest]
    if isinstance(item, Mapping | Sequence) and not isinstance(item, str):
        return [lead + _flow(item)]
    return [lead + (_text(item) if isinstance(item, str) else _plain(item))]


def _flow(node: Node) -> str:
    if isinstance(node, str):
        return _text(node)
    if isinstance(node, Mapping):
        return "{" + ", ".join(f"{_text(key)}: {_flow(value)}" for key, value in node.items()) + "}"
    if isinstance(node, Sequence):
        return "[" + ", ".join(_flow(item) for item in node) + "]"
    return _plain(node)


def _text(value: str) -> str:
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(c if c == " " or c.isprintable() else f"\\U{ord(c):08X}" for c in quoted)


def _plain(value: float | bool | None) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} has no place in a provisioning file")
    text = json.dumps(value)
    # YAML 1.1 takes 1e-9 for a text: an exponent needs a point before it.
    return text.replace("e", ".0e") if isinstance(value, float) and "e" in text and "." not in text else text


def _key(key: str) -> str:
    return key if key.replace("_", "").isalnum() and key.isascii() else json.dumps(key)
