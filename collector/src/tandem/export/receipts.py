"""The server's receipts, on disk beside the manifests: ``receipts/NAME.json``, one a file."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

from tandem.schema.trace import Receipt, TraceError, is_name, read_receipt
from tandem.spool.durable import sync_folder, write_durably

log = logging.getLogger(__name__)

FOLDER = "receipts"


class Receipts:
    """``folder``: the probe's. For any number of threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER

    def keep(self, receipt: Receipt) -> None:
        """Write it durably: when this returns, the probe's copy may go. OSError when the disk takes nothing."""
        file = self._file(receipt.name)
        new = [place for place in (file.parent, *file.parent.parents) if not place.exists()]
        file.parent.mkdir(parents=True, exist_ok=True)
        for place in new:
            sync_folder(place.parent)
        write_durably(file, (json.dumps(receipt.as_json(), indent=1) + "\n").encode())

    def of(self, name: str) -> Receipt | None:
        """The receipt of a file; None when there is none, or none that can be read (the server tells it again)."""
        try:
            receipt = read_receipt(json.loads(self._file(name).read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError, TraceError) as error:
            log.warning("%s is no receipt: %s; the server is asked for it again", self._file(name), error)
            return None
        return receipt if receipt.name == name else None

    def names(self) -> set[str]:
        """Of all files that have one."""
        found = set()
        for place, _, files in os.walk(self._folder):
            for file in files:
                name = str((Path(place) / file).relative_to(self._folder))
                if name.endswith(".json") and is_name(name.removesuffix(".json")):
                    found.add(name.removesuffix(".json"))
        return found

    def _file(self, name: str) -> Path:
        if not is_name(name):
            raise ValueError(f"{name!r} is no trace's name")
        return self._folder / f"{name}.json"
