"""The two lowest steps of the recovery ladder. At an AT port: start the dialogue anew, and switch the radio off and on."""

from __future__ import annotations

from tandem.at.channel import Channel
from tandem.at.errors import NoAnswer, PortLost
from tandem.at.grammar import prefix
from tandem.modem.http_transport import WebChannel
from tandem.modem.reset_web import reset_web
from tandem.modem.session import RADIO_S, Session
from tandem.modem.steps import ANSWER_S, AT, CFUN, CannotStepError, SimLockedError, StepFailedError


def reset(session: Session, step: str) -> str:
    """Do ``at`` or ``cfun``, of a web server ``session`` or ``reboot``; one line of what was done. CannotStepError, StepFailedError or
    SimLockedError. Owner's thread only."""
    try:
        channel = session.reopen()
    except PortLost as error:
        raise CannotStepError(f"there is no port: {error}") from error
    try:
        if isinstance(channel, WebChannel):
            return reset_web(session, channel, step)
        if not isinstance(channel, Channel):
            raise CannotStepError(f"{step} is no step of this kind of modem")
        if step == AT:
            return _dialogue(channel)
        if step == CFUN:
            return _radio(session, channel)
    except PortLost as error:
        session.lost()
        raise StepFailedError(str(error)) from error
    except NoAnswer as error:
        raise StepFailedError(str(error)) from error
    raise CannotStepError(f"{step} is no step of an AT port")


def _dialogue(channel: Channel) -> str:
    """Port opened anew, AT (V.250 clause 5.2.1), ATZ (6.1.1). Not +CFUN=1,1, which takes the modem off the bus."""
    channel.ask("AT", ANSWER_S)
    channel.ask("ATZ", ANSWER_S)
    pin = channel.ask("AT+CPIN?", ANSWER_S)  # 27.007 clause 8.3
    asked = [line for line in pin.lines if prefix(line) == "+CPIN" and "READY" not in line.upper()]
    if asked or pin.final.code in ("cme_error 11", "cme_error 12"):
        raise SimLockedError(asked[0] if asked else pin.final.code)
    return "port opened anew, answers AT and ATZ"


def _radio(session: Session, channel: Channel) -> str:
    """Radio off and on (27.007 clause 8.2). A modem that did not confirm the second is switched on at its next set-up."""
    session.switch_on = True
    off = channel.ask("AT+CFUN=4", RADIO_S)
    on = channel.ask("AT+CFUN=1", RADIO_S)
    if not on.final.ok:
        raise StepFailedError(f"AT+CFUN=1: {on.final.code}")
    session.switch_on = False
    return "radio switched off and on" if off.final.ok else f"radio switched on; AT+CFUN=4: {off.final.code}"
