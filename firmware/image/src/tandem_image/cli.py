"""``tandem-image``, which ``./kit image`` calls."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from tandem_image import build, card, disks, gather, inventory
from tandem_image.errors import ImageError, RefusedError
from tandem_image.progress import Bar

_MB = 1_000_000


def parser() -> argparse.ArgumentParser:
    """The flags."""
    made = argparse.ArgumentParser(
        prog="tandem-image",
        description="A Raspberry Pi OS Lite image (bookworm or trixie, armhf or arm64) becomes the image of one probe, and goes onto "
        "its card. Nothing is mounted; root's rights are needed for the card only.",
        epilog="Exit status: 0 done, 1 refused or failed, 2 wrong usage, 3 a program is missing, 130 Ctrl-C. "
        "More: firmware/image/README.md",
    )
    made.add_argument(
        "name", nargs="?", metavar="NAME", help="the probe's name: its host name, and its name in the inventory"
    )
    made.add_argument(
        "--inventory", "-i", action="append", default=[], metavar="PATH", help="Ansible's inventory; flags go before it"
    )
    made.add_argument("--vault-password-file", metavar="FILE", help="opens its encrypted files")
    made.add_argument("--ask-vault-pass", action="store_true", help="asks for what opens them")
    made.add_argument("--image", metavar="FILE", help="the stock image, .img or .img.xz (inventory: tandem_image_file)")
    made.add_argument(
        "--output",
        "-o",
        metavar="FILE",
        type=Path,
        help="the prepared image (NAME.img); with --card, kept only if given",
    )
    made.add_argument("--card", metavar="DEVICE", type=Path, help="write it to this removable disk, and read it back")
    made.add_argument("--yes", action="store_true", help="erase the card without asking")
    made.add_argument("--cards", action="store_true", help="say which removable disks there are, and end")
    made.add_argument("--json", action="store_true", help="the result as one JSON object")
    people = made.add_argument_group("people")
    people.add_argument(
        "--ssh-key",
        action="append",
        default=[],
        metavar="FILE.pub",
        help="who may log in (tandem_operator_keys as well)",
    )
    people.add_argument("--user", metavar="USER", help="their account, without a password (tandem_user; tandem-admin)")
    network = made.add_argument_group("networks of the first start")
    network.add_argument(
        "--wifi-country", metavar="CC", help="two capitals, such as DE; without it the radio stays off"
    )
    network.add_argument("--wifi-ssid", metavar="NAME")
    network.add_argument("--wifi-password-file", metavar="FILE")
    network.add_argument(
        "--apn", action="append", default=[], metavar="APN", help="access point of a SIM (apn in tandem_paths)"
    )
    enrol = made.add_argument_group("enrolment")
    enrol.add_argument(
        "--invite", metavar="FILE", help="output of 'tandem-server probe invite NAME --json'; - for standard input"
    )
    enrol.add_argument(
        "--gateway", metavar="URL", help="https://HOST:8443 (tandem_server_name and tandem_server_ports)"
    )
    enrol.add_argument(
        "--ca-file", metavar="FILE", help="the server's CA, where it is not a public one (tandem_ca_file)"
    )
    enrol.add_argument("--no-enrolment", action="store_true", help="the playbook brings the invitation instead")
    made.add_argument(
        "--root-size",
        metavar="SIZE",
        help="of the system's partition: 8G, 7500M; the rest is the spool's (tandem_image_root_size)",
    )
    return made


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    flags = parser().parse_args(arguments)
    try:
        if flags.cards:
            return _cards(flags.json)
        if flags.name is None:
            raise ImageError("which probe? mend: tandem-image NAME … (--help)")
        return _image(flags)
    except ImageError as error:
        print(f"tandem-image: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print("tandem-image: stopped; nothing half done is left but on a card that was being written", file=sys.stderr)
        return 130


def _image(flags: argparse.Namespace) -> int:
    vault = ["--vault-password-file", flags.vault_password_file] if flags.vault_password_file is not None else []
    variables = inventory.read(
        flags.name, flags.inventory, [*vault, *(["--ask-vault-pass"] if flags.ask_vault_pass else [])]
    )
    settings = gather.gather(flags, variables)
    stock = gather.stock_image(flags, variables)
    if flags.card is not None:
        # Before minutes of unpacking; and again, with the size, right before it is written.
        disks.choose(flags.card, 0)
    target = flags.output or Path(f"{settings.probe}.img")
    with Bar("unpacked") as bar:
        made = build.make(stock, target, settings, bar.show)
    result = {
        **dataclasses.asdict(made),
        "path": str(made.path),
        "probe": settings.probe,
        "user": settings.user,
        "card": None,
        "sha256": None,
    }
    try:
        if flags.card is not None:
            result |= {"card": str(flags.card), "sha256": _write(made, flags.card, settings.probe, flags.yes)}
    finally:
        if flags.card is not None and flags.output is None:
            made.path.unlink()
            result["path"] = None
    print(json.dumps(result) if flags.json else _said(made, result))
    return 0


def _write(made: build.Made, device: Path, probe: str, sure: bool) -> str:
    disk = disks.choose(device, made.card_bytes)
    if not sure:
        if not sys.stdin.isatty():
            raise ImageError(f"everything on {device} would be erased and nobody is there to ask; mend: --yes")
        print(
            f"{disk.path}: {disk.model}, {disk.size_bytes / _MB / 1000:.1f} GB. Everything on it is erased for {probe}.",
            file=sys.stderr,
        )
        if input("Its name again, to go on: ").strip() not in (disk.name, str(disk.path)):
            raise RefusedError("not written")
    with Bar("written") as writing, Bar("compared") as comparing:
        bars = {"write": writing, "compare": comparing}
        return card.write(made.path, disk.path, lambda step, done: bars[step].show(done))


def _said(made: build.Made, result: dict[str, object]) -> str:
    where = f"{result['card']}, read back (SHA-256 {result['sha256']})" if result["card"] else str(made.path)
    lines = [
        f"{result['probe']}: Raspberry Pi OS {made.release} {made.architecture} on {where}",
        f"  fits cards of {made.card_bytes / _MB / 1000:.1f} GB or more; what is beyond that becomes the spool at the first start",
    ]
    if result["path"] is not None and made.enrols:
        lines.append("  who has this file has the probe's invitation: delete it once the card is written")
    if not made.enrols:
        lines.append("  it does not enrol by itself: the playbook brings its invitation")
    return "\n".join(lines)


def _cards(as_json: bool) -> int:
    found = [disk for disk in disks.disks() if disk.removable and disk.size_bytes]
    if as_json:
        rows = [{**dataclasses.asdict(disk), "path": str(disk.path)} for disk in found]
        print(json.dumps(rows))
        return 0
    for disk in found:
        print(
            f"{disk.path}  {disk.size_bytes / _MB / 1000:6.1f} GB  {disk.model}{'  in use: ' + ', '.join(disk.uses) if disk.uses else ''}"
        )
    if not found:
        print("no removable disk is plugged in", file=sys.stderr)
        return 1
    return 0
