"""Batches on the workers of a Dask cluster, their results in order. The only module that imports distributed."""

from __future__ import annotations

import asyncio
import functools
import importlib
import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tandem_server.analysis.traces import manifest
from tandem_server.analysis.traces.batch import Analysed
from tandem_server.analysis.traces.processes import LostError, Task, by_itself, in_order

try:
    distributed: Any = importlib.import_module("distributed")
except ImportError as error:
    raise ImportError("--dask needs distributed; hint: pip install 'tandem-server[dask]'") from error

Client = Any
Future = Any
"""``distributed``'s, which has no types."""
ANSWERS_WITHIN_S = 10
PATIENCE_S = 60.0
"""How long a cluster may be without any worker."""


class AddressError(ValueError):
    """Nobody answers there as a scheduler does; one line with the mend."""


class ClusterError(RuntimeError):
    """The cluster cannot do it, or not any more; one line with the mend."""


@contextmanager
def cluster(address: str) -> Iterator[Any]:
    """A client of the scheduler there. AddressError."""
    _quiet()
    try:
        host, port = distributed.comm.get_address_host_port(address)
        if not 0 < port < 65536:  # the resolver would take its last 16 bits
            raise ValueError(f"{port} is no port")
        socket.create_connection((host, port), ANSWERS_WITHIN_S).close()
        asyncio.run(asyncio.wait_for(_greet(address), ANSWERS_WITHIN_S))
        client = distributed.Client(address, timeout=ANSWERS_WITHIN_S, set_as_default=False)
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or str(error) or "it says nothing").splitlines()[0]
        raise AddressError(
            f"--dask {address}: no Dask scheduler answers there: {why}; hint: its address as `dask scheduler` tells it, tcp://HOST:8786"
        ) from error
    with client:
        yield client


async def _greet(address: str) -> None:
    """A client itself would wait for ever where something listens and says nothing."""
    security = distributed.Security().get_connection_args("client")
    comm = await distributed.core.connect(address, timeout=ANSWERS_WITHIN_S, **security)
    await comm.close()


def check(client: Client, address: str, out: Path | None) -> None:
    """Whether its workers can do the work: ClusterError says what is lacking where."""
    try:
        told = client.run(_fitness, None if out is None else os.path.abspath(out))  # noqa: PTH100  (as paths are told)
    except ImportError as error:
        raise _lacking(error) from error
    if not told:
        raise ClusterError(f"--dask {address}: no worker is there; hint: on each machine `dask worker {address}`")
    for worker, (version, lacks) in sorted(told.items()):
        if version != manifest.VERSION:
            lacks = (
                f"analyses as version {version}, this is {manifest.VERSION}; hint: the same tandem-server everywhere"
            )
        if lacks:
            raise ClusterError(f"Dask worker {worker}: {lacks}")


def _fitness(out: str | None) -> tuple[int, str | None]:
    """Runs on a worker: its version of the analysis, and what it lacks."""
    try:
        importlib.import_module("tandem_server.analysis.traces.batch")
    except ImportError as error:
        return manifest.VERSION, str(error)
    if out is not None and not (Path(out) / manifest.LOCK).exists():
        return manifest.VERSION, f"{out} is not there; hint: captures and --out in folders that all machines share"
    return manifest.VERSION, None


def analysed(
    client: Client, batches: Sequence[list[str]], task: Task, *, say: Callable[[str], None]
) -> Iterator[Analysed]:
    """Each batch's result, in order. ClusterError: the cluster is gone. What the task raises is raised here.

    A batch whose worker dies is given to another one by Dask. When it has outlived as many workers as Dask allows (three), each of its
    files is done by itself, and what is lost then has failed.
    """
    submit = functools.partial(_submit, client, task)

    def result(batch: list[str], future: Future) -> Analysed:
        try:
            return _result(client, batch, future)
        except LostError:
            say(f"workers died of a batch: its {len(batch)} captures again, each by itself")
        return by_itself(batch, lambda path: _result(client, [path], submit([path])))

    try:
        yield from in_order(batches, lambda: max(1, _threads(client)), submit, result)
    except (CancelledError, distributed.comm.CommClosedError) as error:
        raise ClusterError("the Dask scheduler is gone; hint: start it, call it again: it goes on") from error


def _submit(client: Client, task: Task, batch: Sequence[str]) -> Future:
    """By absolute paths: a worker's folder is another one."""
    whole = [manifest.absolute(path) for path in batch]
    return client.submit(task, whole, pure=False, key=f"tandem-analyse-{uuid.uuid4().hex}")


def _result(client: Client, batch: Sequence[str], future: Future) -> Analysed:
    alone_since: float | None = None
    while True:
        try:
            told: Analysed = future.result(timeout=1)
        except distributed.TimeoutError as error:
            if _threads(client):
                alone_since = None
            elif alone_since is None:
                alone_since = time.monotonic()
            elif time.monotonic() - alone_since > PATIENCE_S:
                raise ClusterError(
                    f"no Dask worker was left for {PATIENCE_S:g} s; hint: start workers, call it again: it goes on"
                ) from error
        except distributed.KilledWorker as error:
            raise LostError from error
        except ImportError as error:
            raise _lacking(error) from error
        else:
            return _as_named(told, batch)


def _as_named(told: Analysed, batch: Sequence[str]) -> Analysed:
    paths = [one for path in batch for one in (path, *path.split(manifest.TOGETHER))]
    names = {manifest.named(manifest.absolute(path)): manifest.named(path) for path in paths}
    for connection in told.connections:
        connection["file"] = names[connection["file"]]
    told.problems = [replace(problem, file=names[problem.file]) for problem in told.problems]
    told.failed = [(names[path], why) for path, why in told.failed]
    return told


def _lacking(error: ImportError) -> ClusterError:
    return ClusterError(
        f"a Dask worker: {error}; hint: pip install 'tandem-server[dask]' there, the same release everywhere"
    )


def _threads(client: Client) -> int:
    return sum(client.nthreads().values())


def _quiet() -> None:
    """What is to be said is said here: Dask's own lines on connections would be in the way of a result on a terminal."""
    for name in ("distributed", "distributed.client", "distributed.core", "distributed.comm"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
