"""Only a removable disk that nobody uses becomes a card. What lsblk says of disks that a test machine has not was written by hand."""

import json
import shutil
import subprocess

import pytest

from tandem_image import ImageError, card
from tandem_image.cli import main

GB = 1_000_000_000


def disk(**changes):
    usual = {"name": "sdx", "path": "/dev/sdx", "type": "disk", "rm": True, "ro": False, "size": 32 * GB}
    return {**usual, "vendor": "Generic ", "model": "MassStorageClass", "mountpoints": [None], **changes}


def part(*places):
    return {"name": "sdx1", "mountpoints": list(places)}


def test_a_card_in_a_reader_is_taken():
    card.refuse(disk(children=[part(None)]))


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (disk(rm=False, children=[part("/")]), "is a disk of this machine, not a card, with /; hint: "),
        (disk(rm=False), "is a disk of this machine, not a card; hint: "),
        (disk(children=[part("/media/me/bootfs")]), r"is mounted: /media/me/bootfs; hint: umount /dev/sdx\?\*"),
        (disk(children=[part(None) | {"children": [part("[SWAP]")]}]), r"is mounted: \[SWAP\]; hint: "),
        (disk(type="part"), "/dev/sdx is a partition; hint: give the whole disk"),
        (disk(type="rom"), "is no disk but rom; hint: "),
        (disk(ro=True), "is read-only; hint: slide the card's lock"),
        (disk(size=0), "the reader is empty; hint: put a card into it"),
        (disk(size=8 * GB), "is too small; hint: 16 GB"),
    ],
)
def test_every_other_is_refused(told, said):
    with pytest.raises(ImageError, match=said) as caught:
        card.refuse(told)
    assert (caught.value.status, str(caught.value).count("\n")) == (1, 0)


def test_this_machines_own_disk_is_refused_before_anything_is_done(fleet, monkeypatch, capsys):
    """By whatever lsblk says of it here."""
    own = next((one for one in card.disks() if one["type"] == "disk" and "/" in card.uses(one)), None)
    if own is None:
        pytest.skip("lsblk shows no disk with this machine's root")
    monkeypatch.chdir(fleet.parent)
    assert main(["kit-01", "-i", "fleet", "--image", "none.img", "--invite", "none", "--card", own["path"]]) == 1
    told = capsys.readouterr().err
    assert "is a disk of this machine, not a card, with " in told
    assert told.count("\n") == 1


def test_what_is_not_there_is_told(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    for device in (tmp_path / "plain", tmp_path / "none"):
        with pytest.raises(ImageError, match=r"there is no such disk; hint: \./kit image --cards"):
            card.check(device)


def test_the_columns_are_lsblks_own():
    if shutil.which("lsblk") is None:
        pytest.skip("no lsblk here")
    listed = subprocess.run(["lsblk", "--json", "--bytes", "--output", card._COLUMNS], capture_output=True, check=False)
    assert listed.returncode == 0, listed.stderr
    for one in json.loads(listed.stdout)["blockdevices"]:
        assert card.named(one).startswith(one["path"])


def test_a_card_that_gives_back_something_else_is_told(tmp_path):
    image, device = tmp_path / "image", tmp_path / "card"
    image.write_bytes(bytes(3 << 20))
    device.write_bytes(bytes(4 << 20))
    with device.open("r+b") as opened:
        card.compare(image, opened.fileno(), device)
        opened.seek(2_000_000)
        opened.write(b"x")
        opened.flush()
        with pytest.raises(ImageError, match="gives back something else than was written; hint: throw this card away"):
            card.compare(image, opened.fileno(), device)


@pytest.mark.parametrize(("status", "said"), [(0, None), (1, "rpi-imager failed; hint: ")])
def test_rpi_imager_writes_the_card_where_it_is_installed(tmp_path, monkeypatch, status, said):
    """Its command line alone: the program is not packaged everywhere."""
    (tmp_path / "rpi-imager").write_text(f'#!/bin/sh\necho "$*" >{tmp_path}/asked\nexit {status}\n')
    (tmp_path / "rpi-imager").chmod(0o755)
    (tmp_path / "sudo").write_text('#!/bin/sh\nshift\nexec "$@"\n')
    (tmp_path / "sudo").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    if said is None:
        card.write_as_root(tmp_path / "image", tmp_path / "card")
    else:
        with pytest.raises(ImageError, match=said):
            card.write_as_root(tmp_path / "image", tmp_path / "card")
    assert (tmp_path / "asked").read_text() == f"--cli {tmp_path}/image {tmp_path}/card\n"
