import pytest


@pytest.fixture
def store(private_influx):
    client = private_influx.client()
    yield client
    client.close()
