"""The server's wheel: with the native pass over captures where it was built before (``./kit setup``), and then for this processor
only; else without, for all. Nothing is compiled here."""

from pathlib import Path

from setuptools import Distribution, setup

LIBRARY = Path(__file__).parent / "src" / "tandem_server" / "tandem_trace_core.abi3.so"


class WithLibrary(Distribution):
    """Is not the same for every processor."""

    def has_ext_modules(self) -> bool:
        return True


if LIBRARY.exists():
    setup(distclass=WithLibrary, options={"bdist_wheel": {"py_limited_api": "cp311"}})
else:
    setup()
