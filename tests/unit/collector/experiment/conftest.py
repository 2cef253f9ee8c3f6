from collections.abc import Iterator

import pytest

from support.scripted_endpoint import Behaviour, Endpoint


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """An endpoint on loopback that behaves; ``behaviour`` may be changed."""
    made = Endpoint(Behaviour(), 0, "127.0.0.1")
    yield made
    made.close()
