"""Where no collector runs: one of our own for as long as the check takes, which keeps nothing. Its folder is for one account only, in
memory where it can be, and removed also after a sudden end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from tandem.app.config import Config
from tandem.app.daemon.hardware import ZONES_KEY
from tandem.app.daemon.supervisor import Supervisor
from tandem.experiment.base import MissingRequirementError

_DRAIN_S = 10.0
_END_S = 60.0
CREDENTIALS, KEPT = Path("/run/credentials"), Path("/etc/tandem")
"""systemd's copies of secrets, which are gone with the service, and where they are copied from."""
RUN = Path("/run")
"""Of this boot, in memory, and written to by root."""
_NAME = "tandem-preflight"


def token_file(config: Config, kept: Path = KEPT) -> Path:
    """The token's file, also where the configuration names the copy that only the running service has."""
    file = config.server.token_file
    if not file.exists() and CREDENTIALS in file.parents and (kept / file.name).exists():
        return kept / file.name
    return file


class OwnCollector:
    """``with OwnCollector(…) as folder``: it polls, its socket and its runs are below ``folder``. The probe's own folder
    (campaigns, spool, counts) is neither used nor touched, nothing is begun by movement or by the server, no captures are made. What
    it polls and measures goes to the server as ever. MissingRequirementError, or ``tandem.export.SetupError``, when it cannot be."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._folder: OwnFolder | None = None
        self._supervisor: Supervisor | None = None
        self._up, self._failed = threading.Event(), list[BaseException]()
        self._thread = threading.Thread(target=self._life, name="own collector", daemon=True)

    def __enter__(self) -> Path:
        try:
            self._folder = OwnFolder()
        except BlockingIOError as error:
            raise MissingRequirementError("another check goes on here; hint: wait for its end") from error
        except OSError as error:
            what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            raise MissingRequirementError(
                f"no folder for the check: {what}; hint: as root, with room in /run"
            ) from error
        try:
            self._supervisor = Supervisor(self._alone(self._folder.path))
            self._thread.start()
            self._up.wait()
            if self._failed:
                raise self._failed[0]
        except BaseException:
            self._end()
            raise
        return self._folder.path

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _t: TracebackType | None
    ) -> None:
        self._end()

    def _alone(self, folder: Path) -> Config:
        config = self._config
        self._keep_zones(folder)
        return replace(
            config,
            folder=folder,
            server=replace(config.server, token_file=self._token(folder)),
            runs=replace(config.runs, on_mobility_start="off"),
            capture=replace(config.capture, enabled=False),
            campaigns=replace(config.campaigns, from_server=False),
            traces=replace(config.traces, enabled=False),
            recovery=replace(config.recovery, enabled=False),
            drain_s=min(config.drain_s, _DRAIN_S),
        )

    def _token(self, folder: Path) -> Path:
        """The probe's own file and no copy of it; in its place, that a missing one fails its own line only, one without a token."""
        file = token_file(self._config)
        try:
            if file.read_text().strip():
                return file
        except (OSError, UnicodeDecodeError):
            pass  # asked for again, and told, where the token's line is made
        (folder / "token").write_text("none")
        return folder / "token"

    def _keep_zones(self, folder: Path) -> None:
        """Home zones are shifted by the probe's own key: another one each time would let them be found by their middle."""
        key = self._config.folder / ZONES_KEY
        (folder / "spool").mkdir()
        if key.exists():
            (folder / ZONES_KEY).touch(0o600)
            (folder / ZONES_KEY).write_bytes(key.read_bytes())

    def _life(self) -> None:
        """All of it in one thread: the spool's is the one that made it."""
        assert self._supervisor is not None  # noqa: S101  (for the type checker: made before the thread began)
        try:
            self._supervisor.start()
        except BaseException as error:  # noqa: BLE001  it is raised in the thread that waits
            self._failed.append(error)
            return
        finally:
            self._up.set()
        try:
            self._supervisor.run()
        finally:
            self._supervisor.close()

    def _end(self) -> None:
        if self._thread.ident is not None:
            if self._supervisor is not None:
                self._supervisor.stop()
            self._thread.join(_END_S)
        if self._thread.is_alive():
            raise MissingRequirementError(
                f"the check's own collector did not end within {_END_S:g} s; hint: end this program"
            )
        if self._folder is not None:
            self._folder.remove()


class OwnFolder:
    """``path``, held by this process until it ends, however that is; what an ended check left is removed. OSError; BlockingIOError while
    another check of this account goes on, whose collector has the modems."""

    def __init__(self, run: Path = RUN) -> None:
        base = _base(run)
        self._held = _emptied(base)
        self.path = base / "own"
        self.path.mkdir(mode=0o700)

    def remove(self) -> None:
        shutil.rmtree(self.path)
        os.close(self._held)


def sweep(run: Path = RUN) -> None:
    """Remove what ended checks of this account left. OSError."""
    for base in filter(_ours, _places(run)):
        with contextlib.suppress(BlockingIOError):  # a check goes on
            os.close(_emptied(base))


def _places(run: Path) -> tuple[Path, Path]:
    return run / _NAME, Path(tempfile.gettempdir()) / f"{_NAME}-{os.geteuid()}"


def _base(run: Path) -> Path:
    """The first of the places that can be had; OSError of the last."""
    first, last = _places(run)
    with contextlib.suppress(OSError):
        first.mkdir(mode=0o700, exist_ok=True)
        if _ours(first):
            return first
    last.mkdir(mode=0o700, exist_ok=True)
    if not _ours(last):
        raise PermissionError(f"{last} is another account's, or others may look into it")
    return last


def _ours(base: Path) -> bool:
    """A folder, and no link, of this account, closed to others: anybody may make names among temporary files."""
    try:
        of = base.lstat()
    except (FileNotFoundError, PermissionError):
        return False
    return stat.S_ISDIR(of.st_mode) and of.st_uid == os.geteuid() and not of.st_mode & 0o077


def _emptied(base: Path) -> int:
    """A descriptor that holds ``base``, in which nothing is. BlockingIOError while another process holds it."""
    held = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for left in base.iterdir():
            shutil.rmtree(left)
    except BaseException:
        os.close(held)
        raise
    return held
