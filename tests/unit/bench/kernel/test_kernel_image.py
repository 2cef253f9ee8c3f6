"""A user's kernel image: refused before anything is started, or named by what the kernel said when it did not come up."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_bench.cli.main import main
from tandem_bench.kernel import machine
from tandem_bench.kernel.image import ImageError, lack, panic, read, release_of


def bzimage(release: str, place: int = 0x3000) -> bytes:
    """As far as its setup header goes (Documentation/arch/x86/boot.rst)."""
    made = bytearray(place + 0x400)
    made[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", made, 0x20E, place - 0x200)
    text = f"{release} (root@vm) #1 SMP\0".encode()
    made[place : place + len(text)] = text
    return bytes(made)


def test_an_image_says_its_release_before_it_is_started(tmp_path: Path) -> None:
    file = tmp_path / "bzImage"
    file.write_bytes(bzimage("4.14.67-mptcp"))
    found = read(str(file))
    assert (found.release, found.stock, len(found.sha256 or "")) == ("4.14.67-mptcp", False, 64)
    assert (read("stock").file, read("stock").stock) == (None, True)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file or directory"),
        (b"", "no Linux image for x86"),
        (b"\x7fELF" + bytes(0x4000), "no Linux image for x86"),
        (bzimage("4.19.126"), r"Linux 4\.19\.126, not 4\.14"),
        (bzimage("6.1.0-56-amd64"), r"Linux 6\.1\.0-56-amd64, not 4\.14"),
        (bzimage("4.140.1"), r"not 4\.14"),
    ],
)
def test_what_is_none_is_refused_with_the_hint_and_starts_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: bytes | None,
    says: str,
) -> None:
    file = tmp_path / "bzImage"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ImageError, match=rf"^{file}: .*{says}.*; hint: .*--image stock$"):
        read(str(file))
    monkeypatch.setattr(machine, "run", None)
    assert main(["kernel", "--image", str(file), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


@given(
    st.binary(max_size=0x400) | st.builds(lambda a, b: a + b"HdrS" + b, st.just(bytes(0x202)), st.binary(max_size=300))
)
def test_any_bytes_have_a_release_or_none(content: bytes) -> None:
    assert release_of(content) is None or " " not in str(release_of(content))


def test_a_console_that_says_nothing_of_it_names_nothing() -> None:
    console = (
        "MPTCP: Stable release v0.94.1\nNOHZ: local_softirq_pending 08\nhtb: netem qdisc 8002: is non-work-conserving?\n"
        "insmod: can't insert '/modules/ext4.ko': invalid module format\n"
    )
    assert (lack(console), panic(console)) == (None, None)
