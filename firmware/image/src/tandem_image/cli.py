"""``tandem-image``, which ``./kit image`` calls."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from pathlib import Path

from tandem_image import ImageError, card, first_start, image, inventory
from tandem_image.settings import invitation, settings


def parser() -> argparse.ArgumentParser:
    """The flags."""
    made = argparse.ArgumentParser(
        prog="./kit image",
        description="Make the image of one probe from a Raspberry Pi OS Lite image (bookworm or trixie), and write its card. "
        "Run it without sudo: only the card is written with root's rights, by sudo.",
        epilog="Exit status: 0 done, 1 a disk or the server refused or failed, 2 wrong usage or input, 3 a program is missing, "
        "130 Ctrl-C. More: docs/field/provision.md",
    )
    made.add_argument("name", nargs="?", metavar="NAME", help="the probe's name, as in the inventory")
    made.add_argument("-i", "--inventory", metavar="DIR", type=Path, help="the fleet (./kit fleet new DIR)")
    made.add_argument("--image", metavar="FILE", help="the stock image, .img or .img.xz (tandem_image_file)")
    made.add_argument(
        "--invite",
        metavar="FILE",
        type=Path,
        help="output of 'tandem-server probe invite NAME --json'; without it the fleet's server is asked over SSH",
    )
    made.add_argument("--no-enrolment", action="store_true", help="the playbook brings the invitation")
    made.add_argument("--card", metavar="DEVICE", type=Path, help="write the card in this removable disk")
    made.add_argument("--out", metavar="FILE", type=Path, help="keep the image here (without --card: NAME.img)")
    made.add_argument("--yes", action="store_true", help="erase the card without asking")
    made.add_argument("--cards", action="store_true", help="list the removable disks, and end")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    flags = parser().parse_args(arguments)
    try:
        if flags.cards:
            return _cards()
        _image(flags)
        return 0
    except ImageError as error:
        print(f"tandem-image: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print("tandem-image: stopped; a card that was being written is not complete", file=sys.stderr)
        return 130


def _image(flags: argparse.Namespace) -> None:
    if flags.name is None or flags.inventory is None:
        raise ImageError("NAME and the inventory are needed; hint: ./kit image NAME -i DIR --image FILE --card DEVICE")
    # Before minutes of work.
    disk = card.check(flags.card) if flags.card is not None else None
    kept = flags.out or (Path(f"{flags.name}.img") if disk is None else None)
    if kept is not None and (kept.exists() or not kept.parent.is_dir()):
        raise ImageError(f"{kept} {'exists' if kept.exists() else 'has no folder'}; hint: --out with another name")
    variables = inventory.variables(flags.inventory, flags.name)
    probe = settings(flags.name, variables)
    stock = flags.image or variables.get("tandem_image_file")
    if not isinstance(stock, str):
        raise ImageError("which image? hint: --image FILE of Raspberry Pi OS Lite, .img or .img.xz")
    if not flags.no_enrolment:
        probe = dataclasses.replace(probe, code=_code(flags))
    unfinished = (kept or Path(f"{flags.name}.img")).with_suffix(".unfinished")
    try:
        image.unpack(Path(stock).expanduser(), unfinished)
        boot = image.BootPartition(unfinished)
        boot.write(first_start.boot_files(boot, probe))
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        if disk is not None:
            _confirm(disk, flags)
            card.write_as_root(unfinished, flags.card)
            print(f"{flags.name}: {flags.card} is written and compared. Put it into the Pi and give it power.")
        if kept is not None:
            unfinished.rename(kept)
            print(f"{flags.name}: {kept}. It holds secrets: write the card, then delete it.")
    finally:
        unfinished.unlink(missing_ok=True)


def _code(flags: argparse.Namespace) -> str:
    if flags.invite is None:
        return invitation(flags.name, inventory.invite(flags.inventory, flags.name))
    try:
        return invitation(flags.name, flags.invite.read_text())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text"
        raise ImageError(f"{flags.invite}: {reason}; hint: leave --invite out to ask the server") from None


def _confirm(disk: dict[str, object], flags: argparse.Namespace) -> None:
    if flags.yes:
        return
    if not sys.stdin.isatty():
        raise ImageError(f"{flags.card} would be erased and nobody can be asked; hint: --yes")
    print(f"Everything on {card.named(disk)} is erased for {flags.name}.", file=sys.stderr)
    if input("Type its name to go on: ").strip() not in (disk["name"], disk["path"], str(flags.card)):
        raise ImageError(f"{flags.card} was not written; hint: the name is {disk['path']}", 1)


def _cards() -> int:
    found = [disk for disk in card.disks() if disk["type"] == "disk" and disk["size"] and card.removable(disk)]
    for disk in found:
        used = ", ".join(card.uses(disk))
        print(card.named(disk) + (f", mounted: {used}" if used else ""))
    if not found:
        print("tandem-image: no removable disk; hint: plug in the card's reader", file=sys.stderr)
    return 0 if found else 1
