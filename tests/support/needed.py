"""The marks of a file of lab tests: what this machine must have for them."""

from __future__ import annotations

import shutil

import pytest

from support.two_paths import why_not


def lab_with(*programs: str, lack: str | None = None) -> list[pytest.MarkDecorator]:
    """For ``pytestmark``: skipped where the lab, one of these programs or what ``lack`` names is missing."""
    lack = why_not() or lack or next((f"{name} is not installed" for name in programs if not shutil.which(name)), None)
    return [pytest.mark.lab, pytest.mark.skipif(lack is not None, reason=str(lack))]
