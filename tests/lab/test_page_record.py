"""``tandem-server page record`` in a real Chromium, of a site on loopback."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from support.standalone_endpoint import SOURCES
from tandem.devtools import find
from tandem_server.content.page import PageStore, verify

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(
        find() is None,
        reason="no Chromium: package chromium-headless-shell or chromium, or TANDEM_CHROMIUM (Ubuntu has it as a snap only)",
    ),
]
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d494844520000000100000001080000000"  # a grey pixel
    "03a7e9b550000000a49444154789c63680000008200811f4a1d510000000049454e44ae426082"
)
SITE = {
    "/": (
        "text/html",
        b'<link rel="stylesheet" href="/s.css"><script src="/a.js?r=1"></script><div class="d">x</div><img src="/moved.png">'
        b'<img src="/missing.png"><script>addEventListener("load", () => setTimeout(() => fetch("/late"), 50))</script>',
    ),
    "/s.css": ("text/css", b".d{background-image:url(/bg.png);width:9px;height:9px}"),
    "/a.js": ("text/javascript", b'new Image().src="/by-script.png"; fetch("/answer", {method: "POST", body: "q"});'),
    "/late": ("text/plain", b"late"),
    "/answer": ("text/plain", b"a"),
    **{f"/{name}.png": ("image/png", PIXEL) for name in ("bg", "by-script", "real")},
}


class Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _send(self) -> None:
        path = self.path.partition("?")[0]
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if path == "/moved.png":
            self.send_response(302)
            self.send_header("Location", "/real.png")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        kind, body = SITE.get(path, ("text/plain", b"none"))
        self.send_response(200 if path in SITE else 404)
        self.send_header("Content-Type", kind)
        if path == "/s.css":
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _send  # noqa: N815  (http.server's names)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    thread.join()
    server.server_close()


def record(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    (folder / "server.toml").write_text("[listen]\n[store]\n")
    argv = [sys.executable, "-m", "tandem_server", "page", "record", *args, "--config", str(folder / "server.toml")]
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    return subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=120, check=False)


def test_a_site_is_recorded_with_its_graph(tmp_path, site):
    done = record(tmp_path, site, "--name", "site")
    assert done.returncode == 0, done.stderr
    opened = PageStore(tmp_path / "content").open("site")
    assert opened is not None
    assert verify(opened) == []
    objects = opened.page.objects
    by_path = {one.url.removeprefix(site): one for one in objects}
    pictures = {f"{name}.png" for name in ("bg", "by-script", "moved", "real", "missing")}
    assert set(by_path) >= {"", "s.css", "a.js?r=1", "answer", "late", *pictures}
    asked_by = {path: objects[one.by].url.removeprefix(site) for path, one in by_path.items() if one.by is not None}
    assert asked_by["s.css"] == asked_by["a.js?r=1"] == asked_by["moved.png"] == ""
    assert asked_by["bg.png"] == "s.css"
    assert asked_by["by-script.png"] == asked_by["answer"] == "a.js?r=1"
    assert asked_by["real.png"] == "moved.png"
    assert (by_path["moved.png"].status, by_path["missing.png"].status, by_path["answer"].method) == (302, 404, "POST")
    assert {path for path, one in by_path.items() if one.after_load} - {"favicon.ico"} == {"late"}
    assert opened.body(objects.index(by_path["bg.png"])) == PIXEL
    assert gzip.decompress(opened.body(objects.index(by_path["s.css"]))) == SITE["/s.css"][1]
    assert ("Content-Encoding", "gzip") in by_path["s.css"].headers
    assert opened.page.times_ms["load"] >= opened.page.times_ms["dom_content_loaded"] > 0
    assert "Chrome" in opened.page.made["browser"]


def test_a_page_reaches_nothing_behind_the_server_that_was_not_named(tmp_path, site):
    """As the database's port on loopback: by what the page asks for, by a redirect, and by a name that leads there."""
    asked: list[str] = []

    class Inside(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = b"secret"
            if self.path == "/":
                body = f'<img src="{site}real.png"><img src="http://localhost:{own}/n">'.encode()
            self.send_response(302 if self.path == "/away" else 200)
            self.send_header("Location", f"{site}s.css")
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Inside)
    own = server.server_address[1]
    threading.Thread(target=server.serve_forever).start()
    try:
        done = record(tmp_path, f"http://127.0.0.1:{own}/", "--name", "hostile")
        away = record(tmp_path, f"http://127.0.0.1:{own}/away", "--name", "away")
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 0, done.stderr
    opened = PageStore(tmp_path / "content").open("hostile")
    assert opened is not None
    assert {one.url for one in opened.page.objects} <= {
        f"http://127.0.0.1:{own}/",
        f"http://127.0.0.1:{own}/favicon.ico",
    }
    assert f"{site}real.png: not a public address" in done.stderr
    assert "/n" not in asked
    assert (away.returncode, PageStore(tmp_path / "content").open("away")) == (1, None)
    assert "not a public address" in away.stderr


def test_a_site_that_is_not_there_is_told_and_the_others_of_the_list_go_on(tmp_path, site):
    (tmp_path / "list").write_text(f"1,http://127.0.0.1:9/\n2,{site}\n")
    done = record(tmp_path, "--list", str(tmp_path / "list"))
    assert done.returncode == 1
    assert "ERR_" in done.stderr.splitlines()[0]
    assert done.stdout.startswith("127.0.0.1: ")
