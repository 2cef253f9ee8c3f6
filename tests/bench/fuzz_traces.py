"""Offers and bytes of traces, mutated without end, through the gateway's own handlers: no answer but those of the spec, nothing stored
that was not offered, nothing outside the folder.

    ./kit run python tests/bench/fuzz_traces.py [--seconds 60] [--seed 1]
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests' support

import fuzzing
from starlette.responses import Response

from support.upload_service_here import CHUNK, PLENTY, Place, offered
from tandem_server.http.body import BodyReader, Budget
from tandem_server.ingest.gateway import handlers
from tandem_server.uploads.resource import UploadResource
from tandem_server.uploads.store import content_of

HANDLERS = handlers(60.0)


class Asked:
    """A request as the handlers see it."""

    def __init__(self, body: bytes, headers: dict[str, str], sha256: str = "") -> None:
        self._body, self.headers, self.path_params, self.scope = body, headers, {"sha256": sha256}, {}

    async def stream(self) -> Any:
        for at in range(0, len(self._body), 5000):
            yield self._body[at : at + 5000]


async def asked(traces: UploadResource, place: Place, dice: random.Random) -> str:
    """One offer, perhaps mutated, and some bytes for it; what was answered."""
    content = dice.choice((b"", b"x", bytes(9000), random.Random(dice.randrange(4000)).randbytes(CHUNK * 2 + 5)))
    offer, stream = offered(content, f"captures/{dice.randrange(5000)}.pcap", dice.choice(("gzip", "identity")))
    told = offer.as_json() if dice.random() < 0.5 else fuzzing.changed(dice, offer.as_json(), 1)
    body = json.dumps(told).encode()
    if dice.random() < 0.2:
        body = fuzzing.scratched(dice, body, most=3)
    headers = {} if dice.random() < 0.9 else {"content-encoding": dice.choice(("gzip", "br"))}
    first = await status_of(traces.offer, Asked(body, headers))
    offset = dice.choice(("0", str(dice.randrange(10_000)), str(CHUNK), "", "-1", "x", "1e3"))
    if dice.random() < 0.5 and (known := place.registry.pending_uploads.known("probe-1", offer.sha256)):
        size = place.stream("probe-1", offer)
        offset = str(size.stat().st_size if size.exists() else known.checked_bytes)
    at = int(offset) if offset.isdigit() else 0
    sent = stream[at : at + dice.randrange(20_000)]
    if dice.random() < 0.3:
        sent = fuzzing.scratched(dice, sent, most=3)
    address = offer.sha256 if dice.random() < 0.95 else str(dice.choice(fuzzing.JUNK))
    return f"{first} {await status_of(traces.append, Asked(sent, {'upload-offset': offset}, address))}"


async def status_of(answer: Callable[[Any, str], Awaitable[Response]], request: Asked) -> int:
    """As the gateway answers it, with what is raised."""
    try:
        return (await answer(request, "probe-1")).status_code
    except Exception as error:
        for kind in type(error).__mro__:
            if kind in HANDLERS:
                return (await HANDLERS[kind](request, error)).status_code  # type: ignore[arg-type,index]
        raise


def check(place: Place) -> int:
    """Everything stored is what it is said to be, and in the folder."""
    rows = place.registry.traces.received()
    for row in rows:
        file, own = place.folder / "traces" / row.place, place.folder / "traces/probe-1"
        assert file.resolve().is_relative_to(own.resolve())
        with place.store.open(row.place) as stored:
            assert content_of(stored, row.encoding) == (row.bytes, row.sha256)
    allowed = {"traces", *(f"registry.sqlite{end}" for end in ("", "-wal", "-shm"))}
    assert {entry.name for entry in place.folder.iterdir()} <= allowed
    return len(rows)


async def fuzz(seconds: float, seed: int, folder: Path) -> None:
    place, dice, answers = Place(folder, PLENTY), random.Random(seed), Counter[str]()
    traces = UploadResource(place.desk, BodyReader(Budget(1 << 26), 60.0, 4), 60.0)
    for _ in fuzzing.rounds(seconds):
        answers[await asked(traces, place, dice)] += 1
        statuses = {int(word) for words in answers for word in words.split()}
        assert statuses <= {200, 400, 404, 409, 413, 422, 429}, answers
    received = check(place)
    place.registry.close()
    print("answers (offer, bytes):", ", ".join(f"{words}: {count}" for words, count in answers.most_common()))
    print(f"seed {seed}: {answers.total()} offers with bytes, {received} traces received and right")


def main() -> None:
    args = fuzzing.parser(__doc__).parse_args()
    logging.disable()  # each refusal is logged
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(fuzz(args.seconds, args.seed, Path(folder)))


if __name__ == "__main__":
    main()
