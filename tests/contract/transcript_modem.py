"""A modem that says what a transcript holds: on a pseudo-terminal, or as the web server of a stick."""

from __future__ import annotations

import http.server
import os
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def played(content: dict[str, Any], transport: str, delay_s: float = 0.0) -> Iterator[str]:
    """The port's name, or the web server's address, at which the transcript ``content`` is played. Each answer takes ``delay_s``."""
    with _on_the_web(content, delay_s) if transport == "http" else _on_a_terminal(content, delay_s) as where:
        yield where


@contextmanager
def _on_a_terminal(content: dict[str, Any], delay_s: float) -> Iterator[str]:
    master, slave = os.openpty()
    tty.setraw(slave)  # a terminal that has never been open for reading would echo
    ended = threading.Event()
    player = threading.Thread(target=_play, args=(master, content, delay_s, ended))
    player.start()
    try:
        yield os.ttyname(slave)
    finally:
        ended.set()
        os.write(slave, b"\r")  # wakes the player
        player.join()
        os.close(slave)
        os.close(master)


def _play(master: int, content: dict[str, Any], delay_s: float, ended: threading.Event) -> None:
    identity = content["identity"]
    answers = {turn["send"]: turn["receive"].encode("latin-1") for turn in content["dialogue"]}
    for command, key in (("AT+CGMI", "manufacturer"), ("AT+CGMM", "model"), ("AT+CGMR", "revision")):
        answers[command] = f"\r\n{identity[key]}\r\n\r\nOK\r\n".encode()
    waiting = b""
    while not ended.is_set():
        waiting += os.read(master, 4096)
        *commands, waiting = waiting.split(b"\r")
        for command in commands:
            # Whatever else is set up is taken.
            answer = answers.get(command.decode("latin-1"), b"\r\nOK\r\n")
            if not ended.wait(delay_s) and command:
                os.write(master, answer)


@contextmanager
def _on_the_web(content: dict[str, Any], delay_s: float) -> Iterator[str]:
    pages = {turn["send"].removeprefix("GET "): turn["receive"].encode() for turn in content["dialogue"]}
    ended = threading.Event()

    class Stick(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            ended.wait(delay_s)
            page = pages.get(self.path)
            self.send_response(200 if page is not None else 404)
            self.send_header("Content-Length", str(len(page or b"")))
            self.end_headers()
            self.wfile.write(page or b"")

        def log_message(self, *_: object) -> None:
            """Nothing: the test looks at the records."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stick) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            ended.set()
            server.shutdown()
            thread.join()
