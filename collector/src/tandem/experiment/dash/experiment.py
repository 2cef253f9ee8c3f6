"""The play as an experiment: whoami, session, play over one kept connection, the sender's side, result."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from tandem.experiment.base import STOPPED, EnvironmentLackError, Outcome, Output, Stop, StoppedError, phase, record
from tandem.experiment.control import Control, ControlError, Session, whoami
from tandem.experiment.dash import outcome, vlc
from tandem.experiment.dash.fetch import FetchError
from tandem.experiment.dash.link import Link, linked
from tandem.experiment.dash.mpd import MpdError
from tandem.experiment.dash.player import Player
from tandem.experiment.dash.request import PARAMETERS, Request, read
from tandem.experiment.dash.telling import Telling, play_fields
from tandem.experiment.dash.vlc import VlcPlayer
from tandem.experiment.environment import environment
from tandem.experiment.parameters import Parameter
from tandem.mptcp import sockets
from tandem.schema.manifest import Failure

_WHOAMI_TIMEOUT_S = 3.0
_FAREWELL_TIMEOUT_S = 2.0
"""For closing the session when told to stop: who stops us waits."""


class Dash:
    """See ``tandem.experiment.base.Experiment``."""

    name = "dash"
    version = 1
    parameters: tuple[Parameter, ...] = PARAMETERS
    results: tuple[Parameter, ...] = outcome.RESULTS
    phases: tuple[tuple[str, str], ...] = (("play", "one play of the presentation, over one arm (kind and path)"),)

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        """See ``tandem.experiment.base.Experiment``."""
        request = read(parameters)
        asked = request.player
        if asked == "auto":
            request = replace(request, player="vlc" if vlc.there() else "own")
        if request.player == "vlc":
            vlc.command()  # before a session is opened for nothing
        deadline_ns = time.monotonic_ns() + int(request.deadline_s * 1e9)
        further: dict[str, Any] = {
            "public_addresses": {},
            "control_path": None,
            "player": {"asked": asked, "name": request.player},
        }
        control: Control | None = None
        session: Session | None = None
        try:
            control = Control(request)
            with stop.interruptible():
                used = [path for path in request.paths if path.name in request.used]
                further["public_addresses"] = whoami(request, used, _WHOAMI_TIMEOUT_S)
                wanted: dict[str, Any] = {"bytes": None, "seconds": None, **request.options.there(sends=True)}
                session = control.open(request.kind, further["public_addresses"], **wanted)
                further["control_path"] = session.path
        except ControlError as error:
            return Outcome(None, error.failure, environment(request), further)
        except StoppedError:
            if control is not None and session is not None:
                control.close(session, _FAREWELL_TIMEOUT_S)
            return Outcome(None, STOPPED, environment(request), further)
        return self._play(request, control, session, deadline_ns, further, output, stop)

    @staticmethod
    def _play(
        request: Request,
        control: Control,
        session: Session,
        deadline_ns: int,
        further: dict[str, Any],
        output: Output,
        stop: Stop,
    ) -> Outcome:
        """From the manifest on."""
        failure: Failure | None = None
        lack: sockets.UnsupportedError | None = None
        link = Link(request, session, deadline_ns, output, stop)
        player = _player(request, link, output, stop)
        phase(output, "play", 1, 1)
        telling = Telling(output, player)
        with telling, linked(link):
            try:
                player.run()
            except MpdError as error:
                failure = Failure(reason=f"MPD: {error}", retry=False)
            except FetchError as error:
                failure = Failure(reason=str(error), retry=error.retry)
            except StoppedError:
                failure = STOPPED
            except sockets.UnsupportedError as error:
                lack = error
            if isinstance(player, Player):  # VLC's account is closed when VLC has ended
                player.play.playback.give_up(player.play.now())
        sender = control.close(session, _FAREWELL_TIMEOUT_S if stop.requested else request.control_timeout_s)
        if lack is not None:
            raise EnvironmentLackError(str(lack)) from lack
        if sender is not None and player.play.log == []:
            further["sender"] = sender
        measured = outcome.result(request, player.play, player.player, link, sender)
        rule = f"vlc-{request.vlc_logic}" if request.player == "vlc" else request.abr
        fields = play_fields(measured, player.play, whole=failure is None, content=f"{request.content}/{request.mpd}")
        record(output, "dash", fields, kind=request.kind, path=request.primary.name, rule=rule)
        return Outcome(
            measured, failure, {**link.environment, **request.options.told(), "sample_hz": request.sample_hz}, further
        )


def _player(request: Request, link: Link, output: Output, stop: Stop) -> Player | VlcPlayer:
    return VlcPlayer(request, link, output, stop) if request.player == "vlc" else Player(request, link, output, stop)


EXPERIMENT = Dash()
