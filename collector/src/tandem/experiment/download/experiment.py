"""The download as an experiment: session, whoami, connect, transfer with samples, the sender's side, result."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from typing import Any
from urllib.parse import urlencode

from tandem.experiment import http_head
from tandem.experiment.base import STOPPED, EnvironmentLackError, Outcome, Output, Stop, StoppedError
from tandem.experiment.control import Control, ControlError, Session, describe, whoami
from tandem.experiment.download import ordered, outcome
from tandem.experiment.download.request import PARAMETERS, Request, read
from tandem.experiment.measured_connection import connect
from tandem.experiment.parameters import Parameter
from tandem.experiment.sampler import PathNames, Sampler
from tandem.experiment.transfer import Transfer
from tandem.mptcp import sockets
from tandem.mptcp.series import Series
from tandem.schema.manifest import Failure

_WHOAMI_TIMEOUT_S = 3.0
_FAREWELL_TIMEOUT_S = 2.0
"""For closing the session when told to stop: who stops us waits."""


class Download:
    """See ``tandem.experiment.base.Experiment``."""

    name = "download"
    version = 1
    parameters: tuple[Parameter, ...] = PARAMETERS
    results: tuple[Parameter, ...] = outcome.RESULTS

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        """See ``tandem.experiment.base.Experiment``."""
        request = read(parameters)
        deadline_ns = time.monotonic_ns() + int(request.deadline_s * 1e9)
        further: dict[str, Any] = {"first": None, "public_addresses": {}, "control_path": None, "samples": None}
        further["connection"] = None
        control: Control | None = None
        session: Session | None = None
        try:
            control = Control(request)
            with stop.interruptible():
                if request.whoami:
                    further["public_addresses"] = whoami(request, request.carrying, _WHOAMI_TIMEOUT_S)
                wanted: dict[str, Any] = {"bytes": request.bytes, "seconds": request.seconds}
                wanted |= request.options.there(sends=True)
                session = control.open(request.kind, further["public_addresses"], **wanted)
                further["control_path"] = session.path
            return self._measure(request, control, session, deadline_ns, further, output, stop)
        except ControlError as error:
            return Outcome(None, error.failure, outcome.environment(request, None), further)
        except StoppedError:
            if control is not None and session is not None:
                control.close(session, _FAREWELL_TIMEOUT_S)
            return Outcome(None, STOPPED, outcome.environment(request, None), further)
        except sockets.UnsupportedError as error:
            if control is not None and session is not None:
                control.close(session, _FAREWELL_TIMEOUT_S)
            raise EnvironmentLackError(str(error)) from error

    def _measure(
        self,
        request: Request,
        control: Control,
        session: Session,
        deadline_ns: int,
        further: dict[str, Any],
        output: Output,
        stop: Stop,
    ) -> Outcome:
        """From connecting on."""
        orders = ordered.orders_of(request, session)
        with orders or nullcontext():
            try:
                with stop.interruptible():
                    options = ordered.options_of(request, session)
                    connected = connect(request, request.kind, request.primary, request.connect_timeout_s, options)
            except OSError as error:
                sender = control.close(session, request.control_timeout_s)
                refused = Failure(reason=f"connect: {describe(error)}", retry=True)
                return Outcome(None, refused, outcome.environment(request, None), {**further, "sender": sender})
            with connected.socket:
                if orders is not None:
                    ordered.begin(orders, connected, request, output)
                names = PathNames(request.paths)
                series = Series(names.of)
                transfer = Transfer()
                expected = request.subflows or len(request.carrying)
                sampler = Sampler(
                    connected.socket, series, lambda: transfer.received, output, request.sample_hz, expected
                )
                sampler.start()
                head, held_ms = _get(request, session), None
                try:
                    if request.join_before_request:
                        head, held_ms = ordered.held(orders, connected, head, request.subflows or 1, stop)
                    failure = transfer.run(
                        connected.stream,
                        head,
                        request.bytes,
                        request.seconds,
                        request.stall_s,
                        request.read_pause_s,
                        deadline_ns,
                        stop,
                    )
                finally:
                    sampler.stop()
                    if orders is not None:
                        orders.end()  # while the connection lives: its own end is no loss
                environment = outcome.environment(request, connected.socket)
        sender = control.close(session, _FAREWELL_TIMEOUT_S if stop.requested else request.control_timeout_s)
        further["connection"] = None if series.token is None else f"{series.token:08x}"
        further["samples"] = {"made": sampler.made, "failed": sampler.failed, "late_ms_max": sampler.late_ms_max}
        first = next(iter(series.ordered()), None)
        if first is not None:
            further["first"] = {"subflow": first.subflow, "path": first.name.path}
        measured = {
            **outcome.result(request, connected, transfer, series, sender, ordered.came(orders), held_ms),
            **ordered.told(request, orders, series, connected),
        }
        return Outcome(json.loads(json.dumps(measured)), failure, environment, further)


def _get(request: Request, session: Session) -> bytes:
    """The measured request."""
    wanted = {"bytes": request.bytes} if request.seconds is None else {"seconds": f"{request.seconds:g}"}
    target = f"/v1/download?{urlencode(wanted)}"
    headers = {"X-Tandem-Session": session.claim(target), "Accept-Encoding": "identity"}
    return http_head.request(target, request.measurement.authority, headers)


EXPERIMENT = Download()
