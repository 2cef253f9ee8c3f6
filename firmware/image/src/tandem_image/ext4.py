"""The root partition (ext4) inside the image file, by debugfs.

debugfs ends with 0 whatever went wrong and says so on standard error only; so everything written is read back, with owner and mode.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tandem_image.errors import ImageError
from tandem_image.programs import run

_STAT = re.compile(r"Inode: \d+ +Type: (?P<type>[a-z ]+?) +Mode: +(?P<mode>[0-7]+)", re.ASCII)
_OWNER = re.compile(r"User: +(?P<uid>\d+) +Group: +(?P<gid>\d+)", re.ASCII)
_LINK = re.compile(r'Fast link dest: "(?P<to>[^"\n]*)"')
# What a path may hold here: debugfs takes its commands in lines, split at blanks and quotes.
_PLAIN = re.compile(r"/[A-Za-z0-9._@:+/-]*")
_KINDS = {"regular": 0o100000, "directory": 0o040000, "symlink": 0o120000}


@dataclass(frozen=True)
class File:
    """A file to be put into the root; modes as chmod has them."""

    path: str
    content: bytes
    mode: int = 0o644
    uid: int = 0
    gid: int = 0


@dataclass(frozen=True)
class Folder:
    """A folder to be made, or given owner and mode."""

    path: str
    mode: int = 0o755
    uid: int = 0
    gid: int = 0


@dataclass(frozen=True)
class Link:
    """A symbolic link."""

    path: str
    target: str


Entry = File | Folder | Link


@dataclass(frozen=True)
class Found:
    """What lies at a path: its kind (as in _KINDS), mode and owner; of a link, where it leads."""

    kind: str
    mode: int
    uid: int
    gid: int
    target: str | None = None


class RootPartition:
    """The ext4 file system at ``offset`` bytes into the image."""

    def __init__(self, image: Path, offset: int) -> None:
        if "?" in str(image):
            raise ImageError(f"{image}: debugfs takes no ? in a name; mend: rename the file")
        self._place = f"{image}?offset={offset}"

    def _ask(self, request: str) -> tuple[bytes, str]:
        asked = run("debugfs", "-R", request, self._place)
        said = asked.stderr.decode(errors="replace")
        lines = [line for line in said.splitlines() if line and not line.startswith("debugfs ")]
        if (
            any("ilesystem not open" in line or "while opening filesystem" in line for line in lines)
            or "Filesystem not open" in said
        ):
            raise ImageError(f"the root partition cannot be read ({' '.join(lines)}); mend: load the image again")
        return asked.stdout, "\n".join(lines)

    def found(self, path: str) -> Found | None:
        """What lies there; links are not followed."""
        told = self._ask(f"stat {_checked(path)}")[0].decode(errors="replace")
        kind, owner = _STAT.search(told), _OWNER.search(told)
        if kind is None or owner is None:
            return None
        link = _LINK.search(told)
        return Found(
            kind["type"],
            int(kind["mode"], 8) & 0o7777,
            int(owner["uid"]),
            int(owner["gid"]),
            link["to"] if link else None,
        )

    def real(self, path: str) -> str | None:
        """The path behind links (at most eight), or None where nothing is."""
        for _ in range(8):
            found = self.found(path)
            if found is None or found.kind != "symlink" or found.target is None:
                return path if found is not None else None
            joined = PurePosixPath(path).parent / found.target
            parts: list[str] = []
            for part in joined.parts[1:]:
                if part == "..":
                    del parts[-1:]
                else:
                    parts.append(part)
            path = "/" + "/".join(parts)
        return None

    def read(self, path: str) -> bytes | None:
        """A file's content, links followed; None where there is no file."""
        real = self.real(path)
        found = None if real is None else self.found(real)
        if real is None or found is None or found.kind != "regular":
            return None
        return self._ask(f"cat {_checked(real)}")[0]

    def names(self, folder: str) -> list[str]:
        """What lies in a folder, sorted; nothing where there is none."""
        listed = self._ask(f"ls -p {_checked(folder)}")[0].decode(errors="replace")
        # /inode/mode/uid/gid/name/size/
        names = [fields[5] for fields in (line.split("/") for line in listed.splitlines()) if len(fields) > 6]
        return sorted(name for name in names if name not in ("", ".", ".."))

    def put(self, entries: list[Entry]) -> None:
        """All of them at once, the folders above them too; then everything is read back.

        Raises ImageError where something is not there afterwards as it was asked for.
        """
        with tempfile.TemporaryDirectory(prefix="tandem-image-") as scratch:
            commands = self._commands(entries, Path(scratch))
            script = Path(scratch) / "commands"
            script.write_text("".join(f"{command}\n" for command in commands))
            done = run("debugfs", "-w", "-f", str(script), self._place)
        for entry in entries:
            self._verify(entry, done.stderr.decode(errors="replace"))

    def _commands(self, entries: list[Entry], scratch: Path) -> list[str]:
        commands: list[str] = []
        there: dict[str, bool] = {}
        for number, entry in enumerate(entries):
            path = _checked(entry.path)
            for parent in reversed(PurePosixPath(path).parents[:-1]):
                name = str(parent)
                if name not in there:
                    there[name] = self.found(name) is not None
                if not there[name]:
                    commands.append(f"mkdir {name}")
                    there[name] = True
            exists = there.get(path, self.found(path) is not None)
            if isinstance(entry, Folder):
                if not exists:
                    commands.append(f"mkdir {path}")
                there[path] = True
            else:
                if exists:
                    commands.append(f"rm {path}")
                if isinstance(entry, Link):
                    commands.append(f"symlink {path} {_checked(entry.target)}")
                    continue
                local = scratch / str(number)
                local.write_bytes(entry.content)
                commands.append(f"write {local} {path}")
            kind = _KINDS["directory" if isinstance(entry, Folder) else "regular"]
            commands += [
                f"set_inode_field {path} {field} {value}" for field, value in (("uid", entry.uid), ("gid", entry.gid))
            ]
            commands.append(f"set_inode_field {path} mode 0{kind | entry.mode:o}")
        return commands

    def _verify(self, entry: Entry, said: str) -> None:
        found = self.found(entry.path)
        if isinstance(entry, Link):
            good = found is not None and found.target == entry.target
        else:
            kind = "directory" if isinstance(entry, Folder) else "regular"
            good = found == Found(kind, entry.mode, entry.uid, entry.gid)
        if good and isinstance(entry, File):
            good = self.read(entry.path) == entry.content
        if not good:
            lines = [line for line in said.splitlines() if line and not line.startswith("debugfs ")]
            raise ImageError(
                f"{entry.path} could not be written to the root partition ({'; '.join(lines) or 'no reason told'})"
            )

    def check(self) -> None:
        """Have e2fsck look at the whole file system, changing nothing. Raises ImageError when it is not sound."""
        checked = run("e2fsck", "-fn", self._place)
        if checked.returncode != 0:
            said = checked.stdout.decode(errors="replace").strip().splitlines()[-3:]
            raise ImageError(f"the root file system is not sound ({' '.join(said)}); mend: load the image again")


def _checked(path: str) -> str:
    if _PLAIN.fullmatch(path) is None:
        raise ImageError(f"{path!r} is no path that can be written here")
    return path
