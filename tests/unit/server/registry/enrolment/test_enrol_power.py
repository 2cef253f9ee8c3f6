"""The power goes at any instant of an enrolment: the next start goes on, and in the end card and gateway know the same.

A card that loses power is played: what was not synced is gone, renames and removals of a folder that was not synced are undone, or not,
as it happens. Nothing of the gateway is played.
"""

import json
import os
import pathlib
import shutil

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_private_key
from enrolling import script_module


class Cut(BaseException):
    """The power is gone."""


class Card:
    """Counts the instants between two calls; at number ``at`` the power goes. ``keeps``: the folder's own changes survive unsynced."""

    def __init__(self, root, at, keeps):
        self.folder, self.at, self.keeps = root / "etc/tandem", at, keeps
        self.synced, self.durable, self.count = root / "synced", {}, 0

    def instant(self):
        self.count += 1
        if self.count == self.at:
            self.lose()
            raise Cut

    def snapshot(self):
        shutil.rmtree(self.synced, ignore_errors=True)
        shutil.copytree(self.folder, self.synced)
        for file in self.synced.iterdir():
            if file.name not in self.durable:
                file.write_bytes(b"")

    def lose(self):
        if not self.keeps:
            shutil.rmtree(self.folder)
            shutil.copytree(self.synced, self.folder)
            return
        for file in self.folder.iterdir():
            if self.durable.get(file.name) != file.stat().st_ino:
                file.write_bytes(b"")

    def install(self, monkeypatch, module):
        """Every call that reaches the card, or the gateway, lies between two instants."""
        self.durable = {file.name: file.stat().st_ino for file in self.folder.iterdir()}
        self.snapshot()

        def wrapped(real, after=lambda *_: None):
            def call(*args, **named):
                self.instant()
                done = real(*args, **named)
                after(*args)
                self.instant()
                return done

            return call

        def synced(descriptor):
            path = pathlib.Path(f"/proc/self/fd/{descriptor}").readlink()
            if path == self.folder:
                self.snapshot()
            else:
                self.durable[path.name] = path.stat().st_ino

        def renamed(source, target):
            if source.name in self.durable:
                self.durable[target.name] = self.durable.pop(source.name)

        monkeypatch.setattr(module.os, "open", wrapped(os.open))
        monkeypatch.setattr(module.os, "fsync", wrapped(os.fsync, synced))
        monkeypatch.setattr(module.Path, "rename", wrapped(pathlib.Path.rename, renamed))
        monkeypatch.setattr(module.Path, "unlink", wrapped(pathlib.Path.unlink))
        monkeypatch.setattr(module, "ask", wrapped(module.ask))


def public_key_here(*_command, given=b""):
    """What openssl answers, without a process a key: the program itself is tried in test_enrol_script.py."""
    return load_der_private_key(given, None).public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.parametrize("keeps", [True, False], ids=["what-was-renamed-stays", "what-was-not-synced-is-undone"])
def test_cut_at_every_instant_and_started_again(gateway, tmp_path, keeps, monkeypatch):
    module, at = script_module(), 0
    module.run = public_key_here
    whole = None
    while whole is None or at < whole:
        at += 1
        root, name = tmp_path / str(at), f"cut-{at}-{'keeps' if keeps else 'loses'}"
        folder = gateway.write_enrol(root, name, gateway.code_for(name))
        card = Card(root, at, keeps)
        with monkeypatch.context() as patched:
            card.install(patched, module)
            try:
                module.enrol_once(folder, root)
                whole = card.count
            except Cut:
                assert whole is None
        module.enrol_once(folder, root)  # the next start, whatever is there
        left = sorted(file.name for file in folder.iterdir() if not file.name.startswith("."))
        assert left == ["enrolled.json", "token", "wireguard.key"], at
        assert gateway.knows((folder / "token").read_text().strip()) == name, at
        told = json.loads((folder / "enrolled.json").read_text())
        assert told["wireguard_public_key"] == module.public_key(folder / "wireguard.key"), at
        assert gateway.enrolled(name).wireguard_public_key == told["wireguard_public_key"], at
    assert whole > 30  # every write has at least eight
