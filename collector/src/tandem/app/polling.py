"""All modems' pollers, and the ladder that looks after the modems they lose."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Sequence

from tandem.app.config import Config
from tandem.app.parts import Parts, PathChange, PollerLike, PollLike, TellsCard
from tandem.app.recovering import Recovering
from tandem.app.runs.scheduler import RunScheduler
from tandem.at.errors import AtError
from tandem.modem.recovery import RecoverySettings
from tandem.modem.reset import WEB_STEPS
from tandem.modem.sim import Card
from tandem.schema.record import Record

log = logging.getLogger(__name__)

STOP_S = 3.0
CARD_S = 15.0
"""For the question who the SIM is: six commands of two seconds at the most, behind a poll."""


class Polling:
    """``put`` takes polls and changes from the pollers' threads and events from the ladder's.
    ``beside``: what else is started and ended with them; ``measuring``: see ``Recovering``."""

    def __init__(
        self,
        config: Config,
        parts: Parts,
        put: Callable[[PollLike | PathChange | list[Record] | None], None],
        beside: Sequence[PollerLike] = (),
        measuring: RunScheduler | None = None,
    ) -> None:
        self._put = put
        self._recovering: Recovering | None = None
        paths = [path for path in config.paths if path.modem is not None]
        self._pollers: dict[str, PollerLike] = {
            path.name: parts.poller(path, config.period_s, self._polled) for path in paths
        }
        self._all = [*beside, *self._pollers.values()]
        if parts.actions is not None and config.recovery.enabled:
            actions = {path.name: parts.actions(path, self._pollers[path.name]) for path in paths}
            settings = RecoverySettings(**dataclasses.asdict(config.recovery))
            web = {
                p.name: WEB_STEPS for p in paths if p.modem is not None and (p.modem.port or "").startswith("http://")
            }
            operators = {path.name: path.operator for path in paths}
            self._recovering = Recovering(settings, actions, operators, put, web, measuring)

    def start(self) -> None:
        """Begin to poll, and to look after what is polled."""
        if self._recovering is not None:
            self._recovering.start()
        for poller in self._all:
            poller.start()

    def stop(self) -> None:
        """End. A poller that is still busy is left behind, and told of."""
        if self._recovering is not None:
            self._recovering.stop()
        for poller in self._all:
            try:
                poller.stop(STOP_S)
            except TimeoutError as error:
                log.warning("%s", error)

    def cards(self, told: Callable[[str, Card | None, str | None], None]) -> list[str]:
        """Have the SIM of each modem looked at, by a thread a modem; ``told`` its path, the card, why it could not be. The paths."""
        asked = {path: one for path, one in self._pollers.items() if isinstance(one, TellsCard)}
        for path, poller in asked.items():
            threading.Thread(target=_card, args=(path, poller, told), name=f"card-{path}", daemon=True).start()
        return list(asked)

    def _polled(self, poll: PollLike | PathChange | list[Record]) -> None:
        self._put(poll)
        if self._recovering is not None and not isinstance(poll, PathChange | list):
            self._recovering.polled(poll)


def _card(path: str, poller: TellsCard, told: Callable[[str, Card | None, str | None], None]) -> None:
    try:
        told(path, poller.card(CARD_S), None)
    except (AtError, TimeoutError) as error:
        told(path, None, str(error) or "it did not answer in time")
