"""A stick's web server in the configuration: its own steps of the ladder, and its place on USB by its network interface."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from doubles import Rehearsal
from https_gateway import Gateway

from tandem.app import real_modems
from tandem.app.config import PathConfig, parse
from tandem.app.config_modem import RecoveryConfig
from tandem.app.real_modems import ModemActions, modem_poller
from tandem.modem.recovery_usb import UsbPlace
from tandem.modem.steps import ALL_STEPS, CannotStepError

GOOD = (Path(__file__).parent / "good.toml").read_text()


class Actions:
    """Nothing can be done here."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def seen(self) -> None:
        pass

    def do(self, step: str) -> str:
        self.done.append(step)
        raise CannotStepError("not here")


def web(path: PathConfig) -> PathConfig:
    assert path.modem is not None
    return replace(path, modem=replace(path.modem, port="http://192.168.8.1", usb=None))


def test_each_kind_of_modem_is_taken_up_its_own_ladder(tmp_path: Path, gateway: Gateway) -> None:
    actions = {"a": Actions(), "b": Actions()}
    collector = Rehearsal(tmp_path, gateway)
    paths = tuple(web(path) if path.name == "b" else path for path in collector.config.paths)
    config = replace(collector.config, paths=paths, recovery=RecoveryConfig(True, 0.2, ALL_STEPS, 600.0))
    collector.rewired(config, actions=lambda path, _poller: actions[path.name]).start()
    collector.pollers["a"].poll(None, failure="no_answer")
    collector.until(lambda: actions["a"].done == ["at", "cfun", "usb", "power"])
    collector.pollers["b"].poll(None, failure="busy")
    collector.until(lambda: actions["b"].done == ["session", "reboot", "usb", "power"])
    assert collector.stop()


def test_a_web_server_is_reset_where_its_network_interface_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def place(port: str) -> UsbPlace:
        asked.append(port)
        return UsbPlace("1-1.4")

    monkeypatch.setattr(real_modems, "usb_place", place)
    monkeypatch.setattr(real_modems, "usb_reset", lambda found: f"{found.path} reset")
    path = web(next(p for p in parse(GOOD, tmp_path / "c.toml").paths if p.name == "b"))
    poller = modem_poller(path, 1.0, lambda _thing: None, lambda _path: None)
    try:
        assert ModemActions(path, poller).do("usb") == "1-1.4 reset"
        assert ModemActions(replace(path, interface=None, usb="1-1.4:1.0"), poller).do("usb") == "1-1.4 reset"
    finally:
        poller.stop()
    assert asked == [path.interface, "1-1.4"]
