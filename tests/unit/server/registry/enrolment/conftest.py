import pytest
from enrolling import TUNNEL, Gateway

from support.serve_on_loopback import gateway_alone


# One for each file: who enrolled in one must not be known to another.
@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    """A real gateway over TLS, with a tunnel and without a database, which enrolment does not need; no secret is in its log."""
    with gateway_alone(tmp_path_factory.mktemp("gateway"), TUNNEL, Gateway) as served:
        yield served
    log = (served.folder / "serve.log").read_text()
    assert not [secret for secret in served.secrets if secret in log]
