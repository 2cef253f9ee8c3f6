"""Stands in for Chromium: a program that speaks DevTools over descriptors 3 and 4 as its script says. ``scripted_browser.py WORD``."""

import json
import os
import subprocess
import sys
import time


def say(message):
    os.write(4, message if isinstance(message, bytes) else json.dumps(message).encode() + b"\0")


def answer():
    """Of a browser that comes up and then never fires a load event."""
    buffer = b""
    while chunk := os.read(3, 65536):
        buffer += chunk
        while b"\0" in buffer:
            raw, _, buffer = buffer.partition(b"\0")
            asked = json.loads(raw)
            result = {
                "Target.getTargets": {"targetInfos": [{"type": "page", "targetId": "T"}]},
                "Target.attachToTarget": {"sessionId": "S"},
                "Browser.getVersion": {"product": "Scripted/1"},
            }.get(asked["method"], {})
            say({"id": asked["id"], "result": result})


def main(word):
    if word == "silent":
        time.sleep(600)
    elif word == "dies":
        print("FATAL: it died", file=sys.stderr)
        sys.exit(1)
    elif word == "nonsense":
        say(b"\xff\xfe{\0")
        time.sleep(600)
    elif word in ("hangs", "family"):
        if word == "family":
            # one in our group, one in a session of its own, both deaf to SIGTERM
            deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
            subprocess.Popen([sys.executable, "-c", deaf])
            subprocess.Popen([sys.executable, "-c", deaf], start_new_session=True)
        answer()


if __name__ == "__main__":
    main(sys.argv[1])
