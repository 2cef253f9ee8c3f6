"""A wheel is taken whole or not at all."""

import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from release_kit import wheel_of
from tandem_release import wheel
from tandem_release.disk import ReleaseError


def test_a_whole_wheel(tmp_path):
    whole = wheel.read(wheel_of(tmp_path / "a.whl", "1.2.0+field.2"))
    assert whole.version == "1.2.0+field.2"
    assert "tandem/cli/main.py" in whole.files


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda files: files.update({"tandem/cli/main.py": b"other"}), "not as RECORD says"),
        (lambda files: files.pop("tandem/cli/main.py"), "in RECORD and not there"),
        (lambda files: files.update({"tandem/more.py": b""}), "not in RECORD"),
        (lambda files: files.update({"../tandem/more.py": b""}), "outside"),
        (lambda files: files.update({"/etc/passwd": b""}), "outside"),
        (lambda files: files.update({"tandem_probe-1.data/scripts/x": b""}), "more than Python code"),
    ],
)
def test_a_wheel_that_is_not_whole_is_refused(tmp_path, change, said):
    with pytest.raises(ReleaseError, match=said):
        wheel.read(wheel_of(tmp_path / "a.whl", "1.0", change=change))


@pytest.mark.parametrize(
    "record",
    [
        lambda text: text.replace("sha256=", "md5="),
        lambda text: text + text,
        lambda text: text.replace(",", ";"),
        lambda _text: "",
        lambda _text: '"',
    ],
)
def test_a_record_that_is_none_is_refused(tmp_path, record):
    with pytest.raises(ReleaseError, match="no whole wheel"):
        wheel.read(wheel_of(tmp_path / "a.whl", "1.0", record=record))


def test_what_is_no_file_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "none.whl"):
        with pytest.raises(ReleaseError, match="name a wheel"):
            wheel.read(path)


@given(data=st.data())
def test_bytes_that_changed_on_the_way_never_become_another_release(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    good = wheel_of(folder / "good.whl", "1.0")
    content = bytearray(good.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.just(len(content)), st.integers(0, len(content))))
    bad = folder / "bad.whl"
    bad.write_bytes(bytes(content[:cut]))
    try:
        found = wheel.read(bad)
    except ReleaseError:
        return
    # A date or a flag in the archive's own fields means nothing; what is unpacked is the same.
    assert found.files == wheel.read(good).files


def test_an_archive_that_unpacks_to_more_than_a_card_holds_is_refused(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "bomb.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(1_000_000))
    monkeypatch.setattr(wheel, "MOST_BYTES", 100_000)
    with pytest.raises(ReleaseError, match="unpacked larger"):
        wheel.read(tmp_path / "bomb.whl")
