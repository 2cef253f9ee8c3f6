"""Modems and sticks that the tests of pollers and channels share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.scripted_modem import ScriptedModem, be_patient
from support.web_stick import WebStick


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)


@pytest.fixture
def modem(tmp_path: Path) -> Iterator[ScriptedModem]:
    scripted = ScriptedModem(tmp_path / "modem")
    yield scripted
    scripted.close()


@pytest.fixture
def stick() -> Iterator[WebStick]:
    served = WebStick()
    yield served
    served.close()
