"""The program that runs on the probe, as it lies in Ansible's role; wheels and a service made by the test."""

import base64
import hashlib
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "ansible/roles/collector/files"))

from tandem_release.place import Place
from tandem_release.releases import Releases
from tandem_release.service import Told

ROLES = Path(__file__).parents[3] / "ansible/roles"

PROGRAM = """import json, pathlib, sys
def main():
    text = pathlib.Path(sys.argv[sys.argv.index("--config") + 1]).read_text() if "--config" in sys.argv else ""
    if "refused" in text:
        print(f"tandem: {sys.argv[sys.argv.index('--config') + 1]}:1: refused", file=sys.stderr)
        return 2
    for line in text.splitlines():
        if line.startswith("file = "):
            open(json.loads(line.removeprefix("file = "))).close()
    print("VERSION")
    return 0
"""


def wheel_of(path, version, *, change=lambda _files: None, record=lambda text: text):
    """A wheel with a program that stands for the collector; ``change`` alters its files, ``record`` its RECORD."""
    info = f"tandem_probe-{version}.dist-info"
    files = {
        "tandem/__init__.py": b"",
        "tandem/cli/__init__.py": b"",
        "tandem/cli/main.py": PROGRAM.replace("VERSION", version).encode(),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tandem-probe\nVersion: {version}\n".encode(),
    }
    rows = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b'=').decode()},{len(body)}"
        for name, body in files.items()
    ]
    change(files)
    files[f"{info}/RECORD"] = record("\n".join([*rows, f"{info}/RECORD,,"]) + "\n").encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, body in files.items():
            archive.writestr(zipfile.ZipInfo(name), body)  # of no date: the same files are the same wheel at any time
    return path


@dataclass
class Kit:
    """A probe's file system in a folder."""

    home: Path
    root: Path

    @property
    def releases(self):
        return Releases(self.home)

    @property
    def place(self):
        return Place(self.releases, self.root)

    def install(self, version):
        with self.releases.alone():
            return self.releases.install(wheel_of(self.home.parent / f"{version}.whl", version), None)

    def stage(self, **files):
        """Files by name without folder: config goes to /etc/tandem, unit to systemd's. None: no longer staged."""
        for name, text in files.items():
            path = self.home / "staged" / WHERE[name]
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
            else:
                path.write_text(text)

    def seen(self):
        """What a boot would start."""
        links = {name: self.releases.linked(name) for name in ("current", "previous")}
        return {
            **links,
            **{
                name: (self.root / path).read_text() if (self.root / path).exists() else None
                for name, path in WHERE.items()
            },
        }


WHERE = {
    "config": "etc/tandem/config.toml",
    "authority": "etc/tandem/ca.pem",
    "unit": "etc/systemd/system/tandem.service",
}


@dataclass
class FakeService:
    """Stands for systemd and the collector, which are tried for real on a booted system: by release what the collector says, one
    answer a look; the last stays."""

    kit: Kit
    says: dict
    now_s: float = 0.0
    starts: list = field(default_factory=list)
    looks: int = 0
    idle: bool = True
    stale: bool = False
    works: bool = True

    def told(self):
        release = self.kit.releases.linked("current")
        answers = self.says.get(release, [None])
        answer = answers[min(self.looks, len(answers) - 1)]
        self.looks += 1
        stale, self.stale = self.stale, False
        if answer is None or release is None:
            return Told(False, 0, "", None, stale)
        pid, status = answer
        if status is not None and self.works and isinstance(status.get("spool"), dict):
            status = {**status, "spool": {**status["spool"], "made": 5 + self.looks}}
        return Told(True, pid, str(self.kit.home / release / "bin/python3"), status, stale)

    def start_anew(self):
        self.starts.append(self.kit.releases.linked("current"))
        self.looks = 0

    def wait_idle(self, _seconds):
        return self.idle

    def pause(self, seconds):
        self.now_s += seconds


def status(paths="ab", usable="ab", reached=True):
    """Of a collector with two paths."""
    return {
        "paths": {name: {"state": "up" if name in paths else "down"} for name in "ab"},
        "modem_health": {name: {"state": "usable" if name in usable else "lost"} for name in "ab"},
        "spool": {"path": "a" if reached else None},
    }
