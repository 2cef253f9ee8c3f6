"""Presentations that are built or, where ffmpeg is installed, encoded of a video: sizes, manifests of four kinds, an index; and what of a
folder may be read."""

import os
import re
import struct
import subprocess
from xml.etree import ElementTree as ET

import pytest

from tandem_server.cli.main import main
from tandem_server.content import presentation
from tandem_server.content.library import ContentError, Library
from tandem_server.content.presentation import KINDS, LADDER, Track, manifest

NS = "{urn:mpeg:dash:schema:mpd:2011}"


@pytest.fixture
def built(tmp_path):
    (tmp_path / "film").mkdir()
    presentation.build_synthetic(tmp_path / "film", 60, (1, 6, 15), seed=3)
    return Library(tmp_path)


def size(library, path):
    item = library.open(path)
    assert item is not None, path
    item.close()
    return item.size


def test_sizes_vary_by_the_seed_and_add_up_to_the_bitrate_as_the_same_film_in_all_lengths(built):
    for rung in (LADDER[0], LADDER[-1]):
        sizes = [size(built, f"film/6s/{rung.id}/{n:05d}.m4s") for n in range(1, 11)]
        assert sum(sizes) == pytest.approx(rung.bit_per_s * 60 / 8, rel=1e-3)
        assert max(sizes) > 1.1 * min(sizes)
    assert presentation.complexity(30, 1) == presentation.complexity(30, 1) != presentation.complexity(30, 2)
    ones = [size(built, f"film/1s/v5/{n:05d}.m4s") for n in range(1, 61)]
    fifteens = [size(built, f"film/15s/v5/{n:05d}.m4s") for n in range(1, 5)]
    assert [sum(ones[15 * n : 15 * n + 15]) for n in range(4)] == pytest.approx(fifteens, abs=20)


def test_manifests_of_each_kind_name_files_that_are_there_and_the_index_lists_every_segment(built, tmp_path):
    names = {"number": "00004.m4s", "time": "t45000.m4s", "list": "00004.m4s", "base": "all.mp4"}
    assert names.keys() == set(KINDS)
    for kind, name in names.items():
        root = ET.fromstring((tmp_path / "film" / f"15s-{kind}.mpd").read_text())  # noqa: S314  our own
        assert len(root.findall(f".//{NS}Representation")) == len(LADDER)
        assert root.get("mediaPresentationDuration") == "PT60.000S"
        assert size(built, f"film/15s/v8/{name}")
    assert size(built, "film/15s/v8/init.mp4") == presentation.INIT_BYTES

    text = (tmp_path / "film" / "6s-base.mpd").read_text()
    first, last = map(int, re.search(r'indexRange="(\d+)-(\d+)"', text).groups())
    item = built.open("film/6s/v0/all.mp4")
    box = bytes(item.read(first, last - first + 1))
    assert struct.unpack_from(">I4s", box) == (last - first + 1, b"sidx")
    (count,) = struct.unpack_from(">H", box, 30)
    rows = [struct.unpack_from(">III", box, 32 + 12 * n) for n in range(count)]
    assert [row[1] for row in rows] == [6000] * 10
    assert [row[0] for row in rows] == [size(built, f"film/6s/v0/{n:05d}.m4s") for n in range(1, 11)]
    assert item.size == last + 1 + sum(row[0] for row in rows)


def test_a_last_segment_that_is_longer_makes_a_timeline_of_numbers():
    track = Track(LADDER[0], 10, (60, 61), (5, 5), 9)
    assert "SegmentTimeline" in manifest("number", 6, [track])
    assert "SegmentTimeline" not in manifest("number", 6, [Track(LADDER[0], 10, (60, 60, 5), (5, 5, 5), 9)])


def test_what_is_filled_in_is_random_and_as_long_as_told(built):
    item = built.open("film/15s/v8/00001.m4s")
    content = b""
    while len(content) < item.size:
        piece = item.read(len(content), 1 << 22)
        assert piece
        content += piece
    assert len(content) == item.size
    assert not item.read(item.size, 10)
    assert len(set(content[:4096])) > 200
    assert bytes(item.read(12345, 10)) == content[12345:12355]


def test_nothing_else_can_be_read(built, tmp_path):
    secret = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    secret.mkdir()
    (secret / "secret").write_text("secret")
    folder = tmp_path / "film"
    (folder / ".hidden").write_text("secret")
    (folder / "link.mpd").symlink_to(secret / "secret")
    (folder / "linked").symlink_to(secret)
    os.mkfifo(folder / "pipe")
    inside = [
        "", "/", "/../film/6s-number.mpd", "/.hidden", "/virtual.json", "/link.mpd", "/linked/secret", "/6s", "/pipe",
    ]  # fmt: skip
    inside += ["//6s-number.mpd", "/no.mpd", "/a/b/c/d/e/f", "/6s-number.mpd\0"]
    outside = ["../film/6s-number.mpd", "/film/6s-number.mpd", "other/6s-number.mpd"]
    assert [path for path in [*(f"film{path}" for path in inside), *outside] if built.open(path) is not None] == []


def test_a_real_file_goes_before_a_virtual_one_and_a_broken_index_says_so(built, tmp_path):
    place = tmp_path / "film" / "6s" / "v0"
    place.mkdir(parents=True)
    (place / "00001.m4s").write_bytes(b"real")
    item = built.open("film/6s/v0/00001.m4s")
    assert (item.size, bytes(item.read(1, 9))) == (4, b"eal")
    item.close()
    (tmp_path / "film" / "virtual.json").write_text('{"files": {"a": 1}}')
    with pytest.raises(ContentError, match="build it anew"):
        built.open("film/6s/v0/00002.m4s")


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "server.toml"
    file.write_text('[content]\nfolder = "films"\n')
    return file


def test_the_command_builds_and_replaces(config, tmp_path, capsys):
    for seconds in (30, 20):
        assert main(["dash", "build", "--config", str(config), "--seconds", str(seconds), "--segments", "6"]) == 0
    assert "20 s, segments of 6 s" in capsys.readouterr().out
    assert sorted(p.name for p in (tmp_path / "films").iterdir()) == ["synthetic"]
    assert 'mediaPresentationDuration="PT20.000S"' in (tmp_path / "films/synthetic/6s-list.mpd").read_text()


def test_what_cannot_be_built_is_one_line_and_a_video_without_ffmpeg_is_refused(config, capsys, monkeypatch):
    for arguments, word in [
        (["--seconds", "0"], "--seconds"),
        (["--segments", "6,6"], "--segments"),
        (["--segments", "x"], "--segments"),
        (["--name", "../up"], "--name"),
        (["--video", "/no/such/film"], "no such file"),
    ]:
        assert main(["dash", "build", "--config", str(config), *arguments]) == 2
        (told,) = capsys.readouterr().err.splitlines()
        assert word in told
    monkeypatch.setattr(presentation, "find_ffmpeg", lambda: None)
    assert main(["dash", "build", "--config", str(config), "--video", str(config)]) == 3
    assert "install it, or leave --video out" in capsys.readouterr().err


FFMPEG = presentation.find_ffmpeg()
encodes = pytest.mark.skipif(FFMPEG is None, reason="no ffmpeg")


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    video = folder / "source.mkv"
    source = ["-f", "lavfi", "-i", "testsrc=duration=8:size=320x180:rate=30"]
    subprocess.run([FFMPEG, "-v", "error", *source, "-c:v", "libx264", str(video)], check=True)
    (folder / "film").mkdir()
    presentation.build_encoded(FFMPEG, video, folder / "film", 7, (1, 6), LADDER[:2])
    return folder


@encodes
def test_segments_are_as_long_as_asked_and_named_in_every_way(film):
    assert [len(list((film / f"film/{s}s/v1").glob("0*.m4s"))) for s in (1, 6)] == [7, 2]
    text = (film / "film/6s-time.mpd").read_text()
    scale = int(re.search(r'timescale="(\d+)"', text)[1])
    assert [int(d) / scale for d in re.findall(r' d="(\d+)"', text)] == [6, 1]
    library = Library(film)
    for name in ("6s-number.mpd", "6s/v0/init.mp4", "6s/v0/00002.m4s", f"6s/v0/t{6 * scale}.m4s", "6s/v0/all.mp4"):
        item = library.open(f"film/{name}")
        assert item is not None, name
        item.close()
    assert not [p for p in (film / "film").iterdir() if p.is_dir() and not p.name.endswith("s")]


@encodes
def test_the_one_file_can_be_decoded_whole_and_what_is_no_video_is_one_line(film, tmp_path):
    decode = [FFMPEG, "-nostdin", "-v", "error", "-i", str(film / "film/6s/v1/all.mp4"), "-f", "null", "-"]
    done = subprocess.run(decode, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    text = film / "text.mkv"
    text.write_text("no video")
    with pytest.raises(presentation.EncodeError) as caught:
        presentation.build_encoded(FFMPEG, text, tmp_path, 1, (1,), LADDER[:1])
    assert "\n" not in str(caught.value)
