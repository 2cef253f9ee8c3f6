import time

import pytest


@pytest.fixture
def registry(registry):
    """Of two probes that were seen just now."""
    for name in ("probe-1", "probe-2"):
        registry.probes.add(name)
        registry.seen.note({name: time.time_ns()})
    return registry
