"""The stock image, unpacked beside where the prepared one will be."""

from __future__ import annotations

import lzma
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from tandem_image.errors import ImageError
from tandem_image.mbr import SECTOR

_CHUNK = 4 << 20
_XZ = b"\xfd7zXZ\x00"
_ZEROES = bytes(_CHUNK)


def unpack(source: Path, target: Path, progress: Callable[[int], None]) -> int:
    """Copy ``source`` (.img, or .img.xz whatever its name) to the new file ``target``, holes kept; returns its size in bytes.

    Raises ImageError where it cannot be read to its end.
    """
    done = 0
    try:
        with source.open("rb") as raw, target.open("xb") as out:
            # Whoever has the image has the probe's invitation.
            target.chmod(0o600)
            for chunk in _chunks(raw):
                if chunk == _ZEROES[: len(chunk)]:
                    out.seek(len(chunk), os.SEEK_CUR)
                else:
                    out.write(chunk)
                done += len(chunk)
                progress(done)
            out.truncate(done)
    except (lzma.LZMAError, EOFError):
        raise ImageError(f"{source} is damaged or cut off; mend: load it again and compare its SHA-256") from None
    except FileNotFoundError:
        raise ImageError(
            f"there is no {source}; mend: --image with the file of Raspberry Pi OS Lite (.img or .img.xz)"
        ) from None
    except OSError as error:
        raise ImageError(f"{error.filename or source}: {error.strerror}") from None
    if done % SECTOR or done == 0:
        raise ImageError(
            f"{source} is no image of a disk ({done} bytes); mend: the .img or .img.xz of Raspberry Pi OS Lite"
        )
    return done


def _chunks(raw: BinaryIO) -> Iterator[bytes]:
    """The image itself, in pieces of _CHUNK bytes but for the last."""
    packed = raw.read(len(_XZ)) == _XZ
    raw.seek(0)
    if not packed:
        while chunk := raw.read(_CHUNK):
            yield chunk
        return
    with lzma.open(raw) as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk
