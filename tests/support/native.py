"""The native pass. Where it was never compiled the tests that need it skip; one that is there and cannot be loaded is a failure."""

import importlib.util

import pytest

if importlib.util.find_spec("tandem_server.tandem_trace_core") is None:
    pytest.skip("the native pass is not built; ./kit setup compiles it", allow_module_level=True)

from tandem_server import tandem_trace_core as core

__all__ = ["core"]
