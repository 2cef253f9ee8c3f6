from functools import partial

import pytest

from support.https_gateway import Gateway
from tandem.export.gateway import Link


@pytest.fixture
def patience(monkeypatch):
    """No answer is too late on a busy machine; and a path that failed is tried again at once: see test_export_https.py for its waits."""
    monkeypatch.setattr("tandem.export.gateway.FIRST_S", 0.02)
    monkeypatch.setattr("tandem.export.gateway.Link", partial(Link, connect_s=60.0, answer_s=60.0))


@pytest.fixture
def gateway(tmp_path, request):
    request.getfixturevalue("patience")
    made = Gateway(tmp_path / "gateway")
    yield made
    made.close()
