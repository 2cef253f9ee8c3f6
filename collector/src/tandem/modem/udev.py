"""``ports.toml`` → udev rules: who opens which port, stable names for them, no autosuspend. Pure text."""

from __future__ import annotations

from collections.abc import Sequence

from tandem.modem.ports import InterfaceRule, KnownDevice

_HEAD = """\
# Made by `tandem modem udev` from the families' ports.toml; install as /etc/udev/rules.d/78-tandem-modems.rules.
# The second AT port is the collector's (ModemManager leaves it alone), the first ModemManager's. /dev/tandem/<USB path>-at is
# the port that the collector asks at, whatever its ttyUSB number: the place tells modems apart, never MAC or serial number.

ACTION=="remove", GOTO="tandem_modems_end"

# The interface's own numbers, for the rules below: udev wants all ATTRS of one rule on one and the same parent.
SUBSYSTEMS=="usb", ATTRS{bInterfaceNumber}=="?*", ENV{.TANDEM_NUMBER}="$attr{bInterfaceNumber}"
SUBSYSTEMS=="usb", ATTRS{bInterfaceNumber}=="?*", ENV{.TANDEM_CODES}="\
$attr{bInterfaceClass}/$attr{bInterfaceSubClass}/$attr{bInterfaceProtocol}"
"""

_TAIL = 'LABEL="tandem_modems_end"\n'


def rules(known: Sequence[KnownDevice]) -> str:
    """The rules file. The same devices give the same text; ids that several families claim are written once, the first's."""
    once: dict[tuple[str, str], KnownDevice] = {}
    for device in known:
        once.setdefault((device.vendor, device.product), device)
    blocks = [_block(once[ids]) for ids in sorted(once)]
    return "\n".join((_HEAD, *blocks, _TAIL))


def _block(device: KnownDevice) -> str:
    ids = f'ATTRS{{idVendor}}=="{device.vendor}", ATTRS{{idProduct}}=="{device.product}"'
    lines = [
        f"# {device.family}: {', '.join(_one_line(model) for model in device.models)}",
        'ACTION=="add", SUBSYSTEM=="usb", ENV{DEVTYPE}=="usb_device", '
        + ids.replace("ATTRS", "ATTR")
        + ', TEST=="power/control", ATTR{power/control}="on"',
    ]
    ours = "at-second" if device.has_second_port else "at"
    for rule in device.interfaces:
        told = {ours: "at", "nmea": "nmea"}.get(rule.role)
        if told is not None:
            ignore = ', ENV{ID_MM_PORT_IGNORE}="1"' if rule.role == "at-second" else ""
            lines.append(f'SUBSYSTEM=="tty", {ids}, {_interface(rule)}{ignore}, SYMLINK+="tandem/$id-{told}"')
    return "\n".join(lines) + "\n"


def _interface(rule: InterfaceRule) -> str:
    found = [] if rule.number is None else [f'ENV{{.TANDEM_NUMBER}}=="{rule.number:02x}"']
    codes = (rule.usb_class, rule.subclass, rule.protocol)
    if any(codes):
        found.append(f'ENV{{.TANDEM_CODES}}=="{"/".join(code or "*" for code in codes)}"')
    return ", ".join(found)


def _one_line(text: str) -> str:
    return " ".join(text.split())
