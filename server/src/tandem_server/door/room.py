"""What of the server's disks one probe may fill a day, and what is left free on them whoever stores what."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Collection
from pathlib import Path

from tandem_server.door.rates import Buckets

DAY_S = 86_400.0


class NoRoom(OSError):  # noqa: N818  (an answer, no accident)
    """The disk is full, or nearly. The message names the folder, for the log."""


class DaySpent(OSError):  # noqa: N818  (an answer, no accident)
    """The probe has stored what it may store a day. ``left_s``: until it should ask again."""

    def __init__(self, left_s: float) -> None:
        super().__init__(errno.EDQUOT, "the probe's share of a day's bytes is used up")
        self.left_s = left_s

    def __str__(self) -> str:
        return str(self.strerror)


class Reserve:
    """``least_bytes`` stay free on the file system of each of ``folders``; what of them is not there yet is its parent's."""

    def __init__(self, folders: Collection[Path], least_bytes: int) -> None:
        self._folders, self._least_bytes = folders, least_bytes

    def check(self, coming_bytes: int = 0) -> None:
        """NoRoom unless ``coming_bytes`` more leave enough free."""
        for folder in self._folders:
            there = next((one for one in (folder, *folder.parents) if one.exists()), Path("/"))
            free = shutil.disk_usage(there).free
            if free - coming_bytes < self._least_bytes:
                told = f"{free} bytes are free, {self._least_bytes} are kept free, {coming_bytes} are to come"
                raise NoRoom(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: {told}", str(folder))


class DiskShare:
    """Of manifests, and of results: ``bytes_per_day`` of a probe as they are stored, of which what it did not use comes back by and by.
    Safe to use from any thread."""

    def __init__(self, reserve: Reserve, bytes_per_day: int) -> None:
        self.reserve, self._days = reserve, Buckets(bytes_per_day, period_s=DAY_S)

    def check(self, probe: str) -> None:
        """Whether it may store something now: NoRoom, DaySpent."""
        self.reserve.check()
        if wait_s := self._days.wait_s(probe):
            raise DaySpent(wait_s)

    def charge(self, probe: str, stored_bytes: int) -> None:
        """It has stored so many."""
        self._days.take(probe, stored_bytes)
