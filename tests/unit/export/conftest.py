from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from https_gateway import Gateway

from tandem.export import encoding
from tandem.export.gateway import Link


@pytest.fixture(autouse=True)
def ordinary_encoder(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The encoder runs when nobody else wants the processor, which beside other tests may be never: here as any other process."""
    program = tmp_path_factory.mktemp("encoder") / "encoder.py"
    program.write_text(
        "import os, runpy\n"
        "os.nice = os.sched_setscheduler = lambda *_: None\n"
        f"runpy.run_path({str(encoding._PROGRAM)!r}, run_name='__main__')\n"
    )
    monkeypatch.setattr(encoding, "_PROGRAM", program)


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer is too late on a busy machine; and a path that failed is tried again at once: see test_export_https.py for its waits."""
    monkeypatch.setattr("tandem.export.paths.FIRST_S", 0.02)
    for module in ("any_path", "trace_paths"):
        monkeypatch.setattr(f"tandem.export.{module}.Link", partial(Link, connect_s=60.0, answer_s=60.0))


@pytest.fixture
def gateway(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Gateway]:
    request.getfixturevalue("patience")
    made = Gateway(tmp_path / "gateway")
    yield made
    made.close()
