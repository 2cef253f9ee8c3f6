"""The offer of a file, as the specification has it: written apart from the probe's own, which is held to it."""

import hashlib
from typing import BinaryIO

from tandem.schema.trace import CHUNK_BYTES, Chunk, Encoding, Offer, encoded


def offer_of(file: BinaryIO, name: str, run: str | None, encoding: Encoding, chunk_bytes: int = CHUNK_BYTES) -> Offer:
    """The offer of ``file``, read once from its beginning."""
    whole, total, chunks = hashlib.sha256(), 0, []
    while part := file.read(chunk_bytes):
        whole.update(part)
        total += len(part)
        stream = encoded(part, encoding)
        chunks.append(Chunk(len(stream), hashlib.sha256(stream).hexdigest()))
    return Offer(name, run, total, whole.hexdigest(), encoding, chunk_bytes, tuple(chunks))
