from functools import partial

import pytest

# The HTTPS gateway of the export tests is used here as well.


@pytest.fixture
def gateway(tmp_path, monkeypatch, described_once):  # noqa: ARG001
    """Accepts everything, unless the test scripts it. A collector beside it does at once what is due once a second."""
    from support.https_gateway import Gateway
    from tandem.export import Exporter

    monkeypatch.setattr("tandem.app.daemon.main_loop.TICK_NS", 50_000_000)
    monkeypatch.setattr("tandem.app.daemon.supervisor.Exporter", partial(Exporter, period_s=0.05))
    made = Gateway(tmp_path / "gateway")
    yield made
    made.close()
