"""Flags of an interface by rtnetlink, on the real kernel: with a flag that it knows, and the v0.9x kernel's, which it does not."""

import subprocess
from collections.abc import Iterator

import pytest

from tandem.mptcp import link_flags
from tandem.mptcp_abi.v094 import IFF_NOMULTIPATH

pytestmark = pytest.mark.lab
DEBUG, UP = 0x4, 0x1
NAME = "flags0"


@pytest.fixture
def interface() -> Iterator[str]:
    subprocess.run(["ip", "tuntap", "add", NAME, "mode", "tun"], check=True)
    yield NAME
    subprocess.run(["ip", "link", "delete", NAME], check=True)


def test_one_flag_changes_and_no_other(interface: str) -> None:
    before = link_flags.read(interface)
    assert before is not None
    assert not before & (DEBUG | UP)
    link_flags.change(interface, DEBUG, DEBUG)
    assert link_flags.read(interface) == before | DEBUG
    link_flags.change(interface, 0, DEBUG)
    assert link_flags.read(interface) == before


def test_a_flag_that_this_kernel_does_not_know_stays_away(interface: str) -> None:
    link_flags.change(interface, IFF_NOMULTIPATH, IFF_NOMULTIPATH)
    assert not (link_flags.read(interface) or 0) & IFF_NOMULTIPATH
