"""tandem-server traces: listed, fetched, verified; what is damaged is found."""

import json
import random

import pytest

from support.serve_on_loopback import command as run
from support.upload_service_here import PLENTY, Place, offered
from tandem_server.uploads.service import UploadService

CONTENT = random.Random(9).randbytes(50_000)


def command(*words):
    return run("traces", *words)


@pytest.fixture
def place(tmp_path, monkeypatch):
    made = Place(tmp_path)
    made.received("probe-1", *offered(CONTENT, "captures/a.pcap"))
    made.received("probe-1", *offered(b"log", "a.log", "identity", None))
    made.received("probe-2", *offered(b"other" * 2000, "captures/a.pcap", run="run-2"))
    (tmp_path / "server.toml").write_text("[traces]\n")
    monkeypatch.setenv("TANDEM_SERVER_CONFIG", str(tmp_path / "server.toml"))
    monkeypatch.chdir(tmp_path)
    yield made
    made.registry.close()


def stored(place, at):
    file = place.folder / "traces" / at
    file.chmod(0o640)
    return file


def test_list_names_what_there_is_and_what_is_on_its_way(place):
    status, listed, _ = command("list", "--json")
    rows = json.loads(listed)
    assert status == 0
    assert [(row["probe"], row["name"], row["place"]) for row in rows] == [
        ("probe-1", "captures/a.pcap", "probe-1/captures/a.pcap.gz"),
        ("probe-1", "a.log", "probe-1/a.log"),
        ("probe-2", "captures/a.pcap", "probe-2/captures/a.pcap.gz"),
    ]
    assert len(command("list", "--probe", "probe-1")[1].splitlines()) == 2
    assert [row["probe"] for row in json.loads(command("list", "--run", "run-2", "--json")[1])] == ["probe-2"]
    assert json.loads(command("list", "--unfinished", "--json")[1]) == []
    offer, stream = offered(CONTENT[:9000], "b", "identity")
    place.send("probe-2", offer, stream, 5000)
    (row,) = json.loads(command("list", "--unfinished", "--json")[1])
    assert (row["name"], row["checked_bytes"], row["stream_bytes"]) == ("b", 4096, 9000)
    assert "4096 of 9000" in command("list", "--unfinished")[1]


def test_get_writes_the_file_unpacked_and_only_when_it_is_whole(place):
    assert command("get", "a.log")[:2] == (0, "a.log\n")
    assert (place.folder / "a.log").read_bytes() == b"log"
    status, _, said = command("get", "a.log")
    assert (status, "is there already" in said) == (2, True)
    status, _, said = command("get", "captures/a.pcap")
    assert (status, "--probe" in said) == (2, True)
    assert command("get", "captures/a.pcap", "--probe", "probe-1", "-o", "mine.pcap")[0] == 0
    assert (place.folder / "mine.pcap").read_bytes() == CONTENT
    assert command("get", offered(CONTENT)[0].sha256, "-o", "by-hash.pcap")[0] == 0
    file = stored(place, "probe-1/captures/a.pcap.gz")
    file.write_bytes(file.read_bytes()[:-20])
    status, _, said = command("get", "captures/a.pcap", "--probe", "probe-1")
    assert (status, "in the middle" in said) == (1, True)
    assert not (place.folder / "a.pcap").exists()
    assert list(place.folder.glob("*.part")) == []
    assert command("get", "nothing")[0] == 2
    assert command("list", "--probe", "probe-9")[0] == 2


def test_verify_finds_what_is_damaged_cut_or_gone(place):
    assert command("verify")[:2] == (0, "3 traces, 0 damaged\n")
    file = stored(place, "probe-1/a.log")
    file.write_bytes(b"lug")
    status, told, _ = command("verify", "--json")
    assert status == 1
    assert [row["ok"] for row in json.loads(told)] == [True, False, True]
    file.write_bytes(b"lo")
    assert "2 bytes instead of 3" in command("verify")[1]
    file.unlink()
    assert "gone" in command("verify", "--probe", "probe-1")[1]
    assert command("verify", "--probe", "probe-2")[0] == 0
    packed = stored(place, "probe-2/captures/a.pcap.gz")
    content = bytearray(packed.read_bytes())
    for at in range(0, len(content), 9):
        content[at] ^= 0x10
        packed.write_bytes(content)
        assert command("verify", "--probe", "probe-2", "--json")[0] in (0, 1)  # never a traceback, whatever is there
        content[at] ^= 0x10
    packed.write_bytes(content[: len(content) // 2])
    assert command("verify", "--probe", "probe-2")[0] == 1


def test_the_desk_makes_its_folder_for_the_server_only(tmp_path):
    place = Place(tmp_path)
    UploadService(place.registry, place.store, tmp_path / "deep/er/.unfinished", PLENTY)
    assert (tmp_path / "deep").stat().st_mode & 0o777 == 0o750
    place.registry.close()
