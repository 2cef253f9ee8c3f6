import pytest

from tandem_server.registry import Registry


@pytest.fixture
def store(private_influx):
    """Empty: other tests of this process have the same database."""
    with private_influx.client() as client:
        for name in [row[0] for series in client.query("SHOW MEASUREMENTS") for row in series.rows]:
            client.query(f'DROP SERIES FROM "{name}"')
        yield client


@pytest.fixture
def registry(tmp_path):
    with Registry(tmp_path / "registry.sqlite") as opened:
        yield opened
