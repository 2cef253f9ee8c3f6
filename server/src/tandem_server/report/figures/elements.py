"""Elements of SVG as text: numbers to a tenth, texts escaped. Nothing else makes markup here."""

from __future__ import annotations

from markupsafe import escape


def element(tag: str, content: str | None = None, /, **attributes: str | float | None) -> str:
    """``stroke_width=2`` becomes ``stroke-width="2"``; an underscore at the end and None are left out. ``content`` is markup already."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(v)}"' for key, v in attributes.items() if v is not None
    )
    return f"<{tag}{told}/>" if content is None else f"<{tag}{told}>{content}</{tag}>"


def words(text: str, x: float, y: float, size: float = 12, /, **attributes: str | float | None) -> str:
    """A text at its place, or, with ``transform``, where that puts it."""
    place = {} if "transform" in attributes else {"x": x, "y": y}
    return element("text", str(escape(text)), **place, font_size=None if size == 12 else size, **attributes)


def path(
    d: str,
    hue: str,
    width: float = 1,
    *,
    dashes: str | None = None,
    fill: str = "none",
    **attributes: str | float | None,
) -> str:
    """A stroke."""
    return element("path", d=d, fill=fill, stroke=hue, stroke_width=width, stroke_dasharray=dashes, **attributes)


def rect(left: float, top: float, width: float, height: float, fill: str, **attributes: str | float | None) -> str:
    """A filled rectangle."""
    return element("rect", x=left, y=top, width=width, height=height, fill=fill, **attributes)


def to(*numbers: float) -> str:
    """Numbers of a path."""
    return " ".join(_value(n) for n in numbers)


def _value(value: str | float) -> str:
    if isinstance(value, str):
        return str(escape(value))
    return f"{value:.2f}".rstrip("0").rstrip(".") if abs(value) < 1 else f"{value:.1f}".removesuffix(".0")
