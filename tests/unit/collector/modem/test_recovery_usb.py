"""The steps that touch USB, on a sysfs and a uhubctl made of files."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.modem.reset import (
    CannotStepError,
    StepFailedError,
    UsbPlace,
    port_power,
    switches_alone,
    usb_place,
    usb_reset,
)

LISTING = """Current status for hub 1-1 [2109:3431 USB2.0 Hub, USB 2.10, 4 ports, {switching}]
  Port 1: 0100 power
  Port 2: 0103 power enable connect [2c7c:0125 Android Android]
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A modem at 1-1.2 whose third interface is ttyUSB2."""
    usb = tmp_path / "sys/devices/platform/usb1/1-1/1-1.2"
    tty = usb / "1-1.2:1.2/ttyUSB2/tty/ttyUSB2"
    tty.mkdir(parents=True)
    (tty / "device").symlink_to("../..")
    for name, text in (("busnum", "1\n"), ("devnum", "7\n"), ("authorized", "1\n")):
        (usb / name).write_text(text)
    (usb.parent / "devnum").write_text("2\n")
    for name, to in (("class/tty/ttyUSB2", tty), ("bus/usb/devices/1-1.2", usb)):
        (tmp_path / "sys" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys" / name).symlink_to(to)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/modem-a").symlink_to("ttyUSB2")
    return tmp_path


def test_a_modem_is_found_by_port_link_path_and_network_interface(machine: Path) -> None:
    sys = machine / "sys"
    (sys / "class/net/eth2").mkdir(parents=True)
    (sys / "class/net/eth2/device").symlink_to(next((sys / "devices/platform/usb1/1-1/1-1.2").glob("1-1.2:*")))
    by_path = "/sys/devices/platform/usb1/1-1/1-1.2"
    for port in ("/dev/ttyUSB2", str(machine / "dev/modem-a"), "1-1.2", by_path, "eth2"):
        assert usb_place(port, sys) == UsbPlace("1-1.2")
    assert [usb_place(port, sys) for port in ("/dev/ttyUSB3", "/dev/ttyS0", "eth3")] == [None] * 3
    # hub and port as uhubctl names them
    for path, hub, port in (("1-1.2", "1-1", "2"), ("1-1", "1", "1"), ("2-1.4.3", "2-1.4", "3")):
        assert (UsbPlace(path).hub, UsbPlace(path).port) == (hub, port)


def test_without_its_device_file_the_authorisation_is_taken_and_given(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.modem.reset.UNAUTHORIZED_S", 0.0)
    told = usb_reset(UsbPlace("1-1.2"), machine / "sys", machine / "dev")
    assert "unauthorised and authorised" in told
    assert (machine / "sys/bus/usb/devices/1-1.2/authorized").read_text() == "1"


def test_a_device_that_refuses_the_reset_is_a_failed_step_and_none_cannot_be_reset(machine: Path) -> None:
    file = machine / "dev/bus/usb/001/007"
    file.parent.mkdir(parents=True)
    file.touch()
    with pytest.raises(StepFailedError, match="USB reset: Inappropriate ioctl"):
        usb_reset(UsbPlace("1-1.2"), machine / "sys", machine / "dev")
    with pytest.raises(CannotStepError, match="no USB device at"):
        usb_reset(UsbPlace("1-1.3"), machine / "sys", machine / "dev")


@pytest.fixture
def uhubctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A uhubctl that lists what ``listing`` holds and notes how it was called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "uhubctl"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/called\ncase "$*" in -l*) cat {tmp_path}/listing ;; *) exit $(cat {tmp_path}/status) ;; esac\n'
    )
    program.chmod(0o755)
    (tmp_path / "listing").write_text(LISTING.format(switching="ppps"))
    (tmp_path / "status").write_text("0")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return tmp_path


def test_a_hub_that_can_has_its_port_cycled_and_others_are_left_alone(
    uhubctl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "hub 1-1 port 2" in port_power(UsbPlace("1-1.2"))
    (uhubctl / "status").write_text("1")
    with pytest.raises(StepFailedError, match="status 1"):
        port_power(UsbPlace("1-1.2"))
    (uhubctl / "listing").write_text(LISTING.format(switching="ganged"))  # all ports together
    with pytest.raises(CannotStepError, match="cannot switch one port"):
        port_power(UsbPlace("1-1.2"))
    cycled = ["-l 1-1", "-a cycle -d 2 -l 1-1 -p 2"]
    assert (uhubctl / "called").read_text().splitlines() == [*cycled, *cycled, "-l 1-1"]
    monkeypatch.setattr("shutil.which", lambda *_args, **_more: None)
    with pytest.raises(CannotStepError, match="uhubctl is not installed"):
        port_power(UsbPlace("1-1.2"))


@given(st.text(max_size=200) | st.just(LISTING.format(switching="ppps")), st.text(max_size=8) | st.just("1-1"))
def test_any_listing_of_a_hub_is_read(text: str, hub: str) -> None:
    assert switches_alone(text, hub) in (True, False)
    assert not switches_alone(text, "1-1") or "ppps" in text
