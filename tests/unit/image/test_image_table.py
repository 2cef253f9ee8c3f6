"""The partition table, against what sfdisk makes of it, and against any bytes."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_image import mbr
from tandem_image.errors import ImageError

GIB = 1 << 30


def _sfdisk(image: Path) -> dict:
    program = shutil.which("sfdisk", path="/usr/sbin:/sbin:/usr/bin")
    if program is None:
        pytest.skip("sfdisk (package fdisk) is missing here")
    return json.loads(subprocess.run([program, "--json", str(image)], check=True, capture_output=True).stdout)[
        "partitiontable"
    ]


def test_sfdisk_reads_the_table_with_the_spool_as_it_was_meant(stocks, tmp_path):
    image = tmp_path / "image"
    shutil.copyfile(stocks["trixie", "arm64"].path, image)
    with image.open("r+b") as file:
        sector = file.read(512)
        table = mbr.with_spool(mbr.parse(sector), 8 * GIB, GIB, 0x0BADCAFE)
        file.seek(0)
        file.write(mbr.render(sector, table))
        file.truncate(32 * GIB)  # as on a card
    before, read = _sfdisk(stocks["trixie", "arm64"].path), _sfdisk(image)
    assert read["id"] == "0x0badcafe"
    boot, root, spool = read["partitions"]
    assert boot == {**before["partitions"][0], "node": boot["node"]}
    assert root["start"] == before["partitions"][1]["start"]
    assert root["size"] * 512 >= 8 * GIB
    assert spool["start"] == root["start"] + root["size"]
    assert spool["start"] % mbr.ALIGNED == 0
    assert (spool["size"] * 512, spool["type"]) == (GIB, "83")


@given(st.binary(min_size=446, max_size=446), st.binary(min_size=64, max_size=64))
def test_any_table_is_read_or_refused_and_what_is_read_is_written_alike(code, entries):
    sector = code + entries + b"\x55\xaa"
    try:
        table = mbr.parse(sector)
    except ImageError:
        return
    assert mbr.parse(mbr.render(sector, table)) == table
    assert mbr.render(sector, table)[:440] == code[:440]


@given(st.binary(max_size=600))
def test_what_is_no_table_is_refused(content):
    if content[510:512] != b"\x55\xaa":
        with pytest.raises(ImageError, match="mend"):
            mbr.parse(content)


def test_an_image_with_a_third_partition_is_told_to_be_prepared_already(stocks):
    sector = stocks["bookworm", "armhf"].path.read_bytes()[:512]
    table = mbr.with_spool(mbr.parse(sector), 4 * GIB, GIB, 7)
    with pytest.raises(ImageError, match="prepared before"):
        mbr.stock(table, 1 << 30)


def test_a_root_smaller_than_the_images_own_is_refused_with_the_least_size(stocks):
    table = mbr.parse(stocks["bookworm", "armhf"].path.read_bytes()[:512])
    with pytest.raises(ImageError, match=r"smaller than the image's own.*--root-size"):
        mbr.with_spool(table, 16 << 20, GIB, 7)


def test_a_cut_off_image_is_refused(stocks):
    table = mbr.parse(stocks["bookworm", "armhf"].path.read_bytes()[:512])
    with pytest.raises(ImageError, match="cut off"):
        mbr.stock(table, 20000)
