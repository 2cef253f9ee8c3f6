"""`tandem-server serve pages` as a process of its own: pages, JSON and files over HTTP, read only, on loopback."""

import contextlib
import http.client
import json
import socket
import time

import pytest
from page_runs import CAPTURE, RUN, Arrived, file_of, manifest

from support.serve_on_loopback import await_ready, command, end, free_ports, lay_out, start
from tandem_server.report.run_page import script_hash

FILE = f"/runs/{RUN}/files/captures/a.pcap"


class Served:
    def __init__(self, folder, port):
        self.folder, self.port = folder, port

    def ask(self, method, path, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()


@pytest.fixture(scope="module")
def served(private_influx, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    (port,) = free_ports(1)
    with private_influx.client() as writer:
        for name in [row[0] for series in writer.query("SHOW MEASUREMENTS") for row in series.rows]:
            writer.query(f'DROP SERIES FROM "{name}"')
        arrived = Arrived(folder, writer)
        told = arrived.whole_run()
        arrived.file("notes.log", b"as it is" * 50_000, encoding="identity")
        arrived.file("spoilt.bin", b"good" * 300_000)
        arrived.file("gone.bin", b"gone")
        arrived.manifest(told | {"files": [*told["files"], file_of("captures/other-name.pcap", CAPTURE)]})
        endless = {"bytes": 1, "duration_s": 1e999, "goodput_bit_per_s": 1}
        arrived.manifest(manifest("run-wild.json", experiment={"name": "<script>"}, result=endless))
        (folder / "traces/probe-1/gone.bin.gz").unlink()
        spoilt = folder / "traces/probe-1/spoilt.bin.gz"
        spoilt.chmod(0o640)
        other = folder / "traces/probe-1/captures/a.pcap.gz"
        spoilt.write_bytes(other.read_bytes())
        arrived.registry.close()
    (folder / "server.toml").write_text(
        f'[listen]\npages_port = {port}\n[store]\nfolder = "{private_influx.folder}"\nport = {private_influx.port}\n'
        f'database = "{private_influx.database}"\n'
    )
    process = start(folder, "pages")
    await_ready(process, "pages")
    yield Served(folder, port)
    assert end(process) == 0
    assert "Traceback" not in (folder / "serve.log").read_text()


def test_a_page_and_its_json_also_of_a_run_whose_id_ends_in_json_and_whose_numbers_have_no_end(served):
    status, headers, body = served.ask("GET", f"/runs/{RUN}")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "Complete. 201 of 201 records and 2 of 2 files are here." in body.decode()
    assert b"<svg" in body
    status, headers, body = served.ask("GET", f"/runs/{RUN}.json")
    told = json.loads(body)
    assert (status, headers["content-type"]) == (200, "application/json")
    assert (told["format"], told["manifest"]["id"], told["ledger"]["state"]) == ("tandem-run-page/1", RUN, "complete")
    assert told["pair"] == ["run-0123456789ac"]
    assert {f["name"]: f["href"] for f in told["files"]}["captures/a.pcap"] == FILE
    status, headers, body = served.ask("GET", "/runs/run-wild.json")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"&lt;script&gt;" in body
    status, _, body = served.ask("GET", "/runs/run-wild.json.json")
    assert (status, json.loads(body)["manifest"]["result"]["duration_s"]) == (200, None)


@pytest.mark.parametrize("path", [f"/runs/{RUN}", f"/runs/{RUN}.json", FILE, "/runs/none", "/", "/runs/x/files/y"])
def test_headers_are_strict_whatever_is_asked(served, path):
    status, headers, body = served.ask("HEAD", path)
    assert body == b""
    got = served.ask("GET", path)
    assert (got[0], int(got[1]["content-length"])) == (status, len(got[2]))
    for one in (headers, got[1]):
        assert one["x-content-type-options"] == "nosniff"
        assert one["cache-control"] == "no-store"
        assert "set-cookie" not in one
        assert one["content-security-policy"].startswith("default-src 'none';")
        assert "unsafe-inline" not in one["content-security-policy"].replace("style-src 'unsafe-inline'", "")
    if path == f"/runs/{RUN}":
        assert f"script-src '{script_hash()}'" in headers["content-security-policy"]


def test_there_is_nothing_but_to_read_and_no_other_name_than_this_machines(served):
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        status, headers, _ = served.ask(method, f"/runs/{RUN}")
        assert (status, headers["allow"]) == (405, "GET, HEAD"), method
    assert served.ask("GET", f"/runs/{RUN}", Host="attacker.example")[0] == 421
    assert served.ask("GET", f"/runs/{RUN}", Host="localhost:3000")[0] == 200


NOT_THERE = ["none", "..%2f..%2fetc", "%00", "x" * 5000, "%3Cscript%3E", f"{RUN}/", "\xc3\xa9"]
NOT_THERE += [f"{RUN}/files/{name}" for name in ("..%2f..%2fregistry.sqlite", "../../registry.sqlite", "%22%0d%0aX: 1")]


@pytest.mark.parametrize("name", [*NOT_THERE, "run-0123456789ac/files/captures/a.pcap"])
def test_what_is_not_there_is_one_clear_line(served, name):
    path = f"/runs/{name}"
    ask = f"GET {path.replace(' ', '%20')} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", served.port), 60) as connection:
        connection.sendall(ask.encode("latin-1"))
        told = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = told.partition(b"\r\n\r\n")
    assert head.split()[1] in (b"404", b"400"), head
    if head.split()[1] == b"404":
        assert body.decode().count("\n") == 1
        assert b"text/plain" in head
        assert b"<" not in body


@pytest.mark.parametrize(
    ("name", "content"),
    [("captures/a.pcap", CAPTURE), ("notes.log", b"as it is" * 50_000), ("captures/other-name.pcap", CAPTURE)],
)
def test_a_file_whole_and_from_where_it_broke_off(served, name, content):
    path = f"/runs/{RUN}/files/{name}"
    status, headers, body = served.ask("GET", path)
    assert (status, body) == (200, content)
    assert headers["etag"] == f'"{file_of("", content)["sha256"]}"'
    assert headers["content-disposition"] == f"attachment; filename*=UTF-8''{name.rpartition('/')[2]}"
    assert headers["content-type"] == "application/octet-stream"
    for first, last in ((1000, 70_001), (131_072, len(content) - 1)):
        status, part, body = served.ask("GET", path, Range=f"bytes={first}-{last}", If_Range=headers["etag"])
        assert (status, body) == (206, content[first : last + 1])
        assert part["content-range"] == f"bytes {first}-{last}/{len(content)}"
    assert served.ask("GET", path, If_None_Match=headers["etag"])[0] == 304
    status, headers, _ = served.ask("GET", path, Range=f"bytes={len(content)}-")
    assert (status, headers["content-range"]) == (416, f"bytes */{len(content)}")


def test_a_damaged_file_never_looks_whole(served):
    with pytest.raises(http.client.IncompleteRead):
        served.ask("GET", f"/runs/{RUN}/files/spoilt.bin")
    assert served.ask("GET", f"/runs/{RUN}/files/gone.bin")[0] == 410
    assert served.ask("GET", FILE)[2] == CAPTURE


def test_who_leaves_or_says_nothing_holds_no_place(served):
    """More than may be sent at once begin to load a file and leave; as many say nothing. Then all is as before."""
    held = []
    for n in range(40):
        connection = socket.create_connection(("127.0.0.1", served.port), 60)
        held.append(connection)
        if n % 2:
            connection.sendall(f"GET {FILE} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    for connection in held:
        connection.close()
    until_s = time.monotonic() + 60
    while (answer := served.ask("GET", FILE))[0] != 200:  # until the server has seen them leave
        assert time.monotonic() < until_s, answer
    assert answer[2] == CAPTURE


def test_report_of_a_run_is_the_same_page(served, tmp_path):
    config = ("--config", served.folder / "server.toml")
    status, out, _ = command("report", "--run", RUN, "--out", tmp_path / "r.html", *config)
    assert (status, out.strip()) == (0, str(tmp_path / "r.html"))
    page = (tmp_path / "r.html").read_text()
    assert "Complete. 201 of 201 records" in page
    assert "<a href" not in page
    status, _, told = command("report", "--run", "none", *config)
    assert (status, told.count("\n")) == (2, 1)
    assert "no manifest of run 'none' has arrived" in told
    assert command("report", *config)[0] == 2


def test_a_wrong_configuration_is_one_line(tmp_path):
    port = "[listen]\npages_port = 8445\n"
    for text, word in (
        ("", "no [listen] pages_port"),
        (f'{port}[pages]\nhost = "0.0.0.0"\n', "server.toml:4: [pages] host is 0.0.0.0"),
        (f'{port}[pages]\nhost = "example.org"\n', "server.toml:4: [pages] host is 'example.org'"),
        ("[listen]\npages_port = 8443\n", "two of the ports"),
        (f"{port}[pages]\nbehind_proxy = 1\n", "true or false"),
        (port, "registry.sqlite"),
    ):
        (tmp_path / "server.toml").write_text(text)
        status, _, told = command("serve", "pages", "--config", tmp_path / "server.toml")
        line = told.strip().splitlines()[-1]
        assert (status in (2, 3), word in line, "hint: " in line, "Traceback" in told) == (True, True, True, False), (
            told
        )


@pytest.mark.usefixtures("influx_binary")
def test_all_roles_together_serve_pages_too(tmp_path):
    ports = lay_out(tmp_path)
    (port,) = free_ports(1)
    config = tmp_path / "server.toml"
    config.write_text(config.read_text().replace("[listen]\n", f"[listen]\npages_port = {port}\n"))
    process = start(tmp_path)
    try:
        assert await_ready(process, "pages") == f"127.0.0.1:{port}"
        assert len(set(ports) | {port}) == 5
        status, _, body = Served(tmp_path, port).ask("GET", "/runs/none")
        assert (status, body.count(b"\n")) == (404, 1)
    finally:
        assert end(process) == 0
