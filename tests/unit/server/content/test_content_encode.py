"""A presentation from a video, where ffmpeg is installed."""

import re
import subprocess

import pytest

from tandem_server.content import presentation
from tandem_server.content.library import Library
from tandem_server.content.presentation import LADDER

FFMPEG = presentation.find_ffmpeg()
pytestmark = pytest.mark.skipif(FFMPEG is None, reason="no ffmpeg")


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    video = folder / "source.mkv"
    source = ["-f", "lavfi", "-i", "testsrc=duration=8:size=320x180:rate=30"]
    subprocess.run([FFMPEG, "-v", "error", *source, "-c:v", "libx264", str(video)], check=True)
    (folder / "film").mkdir()
    presentation.build_encoded(FFMPEG, video, folder / "film", 7, (1, 6), LADDER[:2])
    return folder


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


def test_the_one_file_can_be_decoded_whole_and_what_is_no_video_is_one_line(film, tmp_path):
    decode = [FFMPEG, "-nostdin", "-v", "error", "-i", str(film / "film/6s/v1/all.mp4"), "-f", "null", "-"]
    done = subprocess.run(decode, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    text = film / "text.mkv"
    text.write_text("no video")
    with pytest.raises(presentation.EncodeError) as caught:
        presentation.build_encoded(FFMPEG, text, tmp_path, 1, (1,), LADDER[:1])
    assert "\n" not in str(caught.value)
