"""Who holds a port, as /proc tells it."""

from __future__ import annotations

from pathlib import Path

from tandem.app.modem_asked import holder


def test_who_holds_a_port_is_named(tmp_path: Path) -> None:
    (tmp_path / "812/fd").mkdir(parents=True)
    (tmp_path / "812/comm").write_text("ModemManager\n")
    (tmp_path / "ttyUSB2").touch()
    (tmp_path / "812/fd/7").symlink_to(tmp_path / "ttyUSB2")
    assert holder(str(tmp_path / "ttyUSB2"), tmp_path) == "ModemManager (812)"
    assert holder(str(tmp_path / "ttyUSB3"), tmp_path) is None
