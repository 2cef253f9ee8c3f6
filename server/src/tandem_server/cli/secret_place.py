"""Where a token or a code is put: printed, or into a file of its owner's alone."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from tandem_server.cli.stop import EnvironmentLacks


class SecretPlace:
    """Opened before the secret is made, so that none is made and then lost for want of a place. ``path`` None: it is printed."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._fresh = path, None if path is None else path.with_name(path.name + ".tmp")
        self._descriptor: int | None = None

    def __enter__(self) -> SecretPlace:
        if self._fresh is not None:
            try:
                with contextlib.suppress(FileNotFoundError):
                    self._fresh.unlink()
                self._descriptor = os.open(self._fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except OSError as error:
                raise EnvironmentLacks(
                    f"{self._path}: {error.strerror}; hint: name a file that can be written"
                ) from error
        return self

    def deliver(self, secret: str) -> None:
        """Print it, or put it in its file."""
        if self._path is None or self._fresh is None or self._descriptor is None:
            print(secret)
            return
        os.write(self._descriptor, secret.encode() + b"\n")
        os.fsync(self._descriptor)
        self._fresh.rename(self._path)

    def __exit__(self, kind: object, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        if kind is not None and self._fresh is not None:
            self._fresh.unlink(missing_ok=True)
