"""Text on a board."""

from __future__ import annotations

from typing import Unpack

from grafana_foundation_sdk.models import dashboard as sdk
from grafana_foundation_sdk.models import text as options

from tandem_dashboards.panel import Frame, Panel


def words(title: str, markdown: str, **frame: Unpack[Frame]) -> Panel:
    """A few lines of Markdown."""
    return Panel(
        "text", title, "", (), options.Options(options.TextMode.MARKDOWN, content=markdown), sdk.FieldConfig(), **frame
    )
