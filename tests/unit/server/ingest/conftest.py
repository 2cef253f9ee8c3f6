import pytest

from support.serve_on_loopback import whole_server


# One for each file: a probe that one file adds must not be known to another.
@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with whole_server(tmp_path_factory.mktemp("server")) as served:
        yield served
