"""The ladder wired into the collector: a silent modem's steps, its recovery and its giving up reach the database as events."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from doubles import Rehearsal
from https_gateway import Gateway

from tandem.app.config import PathConfig
from tandem.app.config_modem import RecoveryConfig
from tandem.app.pairs import Pairs
from tandem.modem.steps import ALL_STEPS, CannotStepError


class Actions:
    """Only ``possible`` can be done here."""

    def __init__(self, *possible: str, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.possible, self.meanwhile = possible, meanwhile
        self.done: list[str] = []

    def seen(self) -> None:
        pass

    def do(self, step: str) -> str:
        self.done.append(step)
        self.meanwhile()
        if step not in self.possible:
            raise CannotStepError("no port")
        return "radio switched off and on"


def web(path: PathConfig) -> PathConfig:
    return replace(path, modem=replace(path.modem, port="http://192.168.8.1", usb=None))


def began_again(pairs: Pairs) -> bool:
    try:
        return bool(pairs.request("download", {}))
    except ValueError:
        return False


def test_no_run_begins_while_a_modem_is_interrupted_and_no_modem_is_while_a_run_goes_on(
    tmp_path: Path, gateway: Gateway
) -> None:
    collector, refused = Rehearsal(tmp_path, gateway, "long"), []

    def measure() -> None:
        if collector.supervisor.pairs.running:
            return
        with pytest.raises(ValueError, match="a modem is being recovered; try again when it has ended"):
            collector.supervisor.pairs.request("download", {})
        refused.append(len(actions["a"].done))

    actions = {"a": Actions("cfun", meanwhile=measure), "b": Actions()}
    settings = RecoveryConfig(True, 0.2, ("at", "cfun"), 600.0)
    collector.rewired(replace(collector.config, recovery=settings), actions=lambda path, _poller: actions[path.name])
    collector.start()
    pair = collector.supervisor.pairs.request("download", {})
    collector.pollers["a"].poll(None, failure="no_answer")
    collector.until(lambda: actions["a"].done == ["at"])
    assert not collector.supervisor.pairs.hold()
    collector.supervisor.pairs.cancel(pair)
    collector.until(lambda: refused == [2])
    collector.until(lambda: began_again(collector.supervisor.pairs))
    assert collector.stop()


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
