from collections.abc import Iterator

import pictures
import pytest


@pytest.fixture
def no_pictures() -> Iterator[None]:
    with pictures.none():
        yield
