import os

import pytest
from pushing import PushedTo, PushingServer


@pytest.fixture(scope="module")
def disk():
    """What is synced is not what these tests are about; it would be most of their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _file: None)
        patch.setattr(os, "fdatasync", lambda _file: None)
        yield


@pytest.fixture(autouse=True)
def _once(described_once):
    """Campaigns are checked against what the experiments say of themselves."""


@pytest.fixture
def server():
    return PushingServer()


@pytest.fixture
def probe(server, tmp_path):
    return PushedTo(server, tmp_path)
