"""A download by Multipath TCP or TCP as an experiment: its parameters, and whoami, session, connection, transfer with samples, result."""

from __future__ import annotations

import json
from typing import Any

from tandem.experiment.base import STOPPED, EnvironmentLackError, Outcome, Output, Span, Stop, StoppedError
from tandem.experiment.control import whoami
from tandem.experiment.download import outcome
from tandem.experiment.download.connection import DownloadConnection, Request
from tandem.experiment.parameters import Parameter, ParameterError, parameters_of, read_request
from tandem.experiment.results import environment
from tandem.mptcp import sockets


def read(p: dict[str, Any]) -> Request:
    """From parameters that are checked one by one to a request; ParameterError when they contradict each other."""
    if (p["bytes"] is None) == (p["seconds"] is None):
        raise ParameterError("give either 'bytes' or 'seconds'")
    wanted, paths = p["subflows"], len(p["paths"])
    if p["join_before_request"] and (wanted or 1) < 2:
        raise ParameterError("parameter 'join_before_request': give subflows = 2 or 4, which are waited for")
    if wanted is not None and p["kind"] == "tcp":
        raise ParameterError("parameter 'subflows' is of MPTCP; TCP has one connection over one path")
    if (wanted or 1) > 1 and paths < 2:
        raise ParameterError(f"parameter 'subflows': {wanted} take two paths, there is {paths}")
    return read_request(
        Request, p, deadline_s=p["deadline_s"] or (600.0 if p["seconds"] is None else p["seconds"] + 30)
    )


class Download:
    """One transfer over one connection, with statistics of every subflow."""

    name = "download"
    version = 1
    parameters: tuple[Parameter, ...] = parameters_of(Request)
    results: tuple[Parameter, ...] = outcome.RESULTS

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        """Measure one download."""
        request = read(parameters)
        span = Span(request.deadline_s, stop)
        connection = DownloadConnection(request, output)
        addresses: dict[str, str] = {}
        control_path = None
        try:
            if request.whoami:
                with stop.interruptible():
                    addresses = whoami(request, request.carrying)
            connection.open(addresses, stop)
            control_path = None if connection.session is None else connection.session.path
            connection.connect(stop)
            connection.transfer(span.deadline_ns, stop, output)
            open_socket = None if connection.connected is None else connection.connected.socket
            # The congestion control is this end's, the receiver's; the sender's is in its answer.
            surroundings = environment(request, open_socket)
        except StoppedError:
            connection.failure, surroundings = STOPPED, environment(request)
        except sockets.UnsupportedError as error:
            raise EnvironmentLackError(str(error)) from error
        finally:
            connection.close(stop)
        first = next(iter(connection.series.ordered()), None)
        further: dict[str, Any] = {
            "first": None if first is None else {"subflow": first.subflow, "path": first.name.path},
            "public_addresses": addresses,
            "control_path": control_path,
            "samples": connection.samples,
            "connection": connection.token,
        }
        if connection.connected is None and control_path is not None:
            further["sender"] = connection.answer
        measured = outcome.result(connection)
        surroundings |= {"sample_hz": request.sample_hz, **request.options.to_dict()}
        return Outcome(json.loads(json.dumps(measured)), connection.failure, surroundings, further)


EXPERIMENT = Download()
