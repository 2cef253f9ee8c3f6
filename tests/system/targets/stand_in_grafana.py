"""Stands in for Grafana's package, which these tests cannot have: same paths, unit, port and health page, and it says what it is.

Nothing of Grafana is in it. ``make`` writes the package; the text below is its program.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

VERSION = "0.0.0+standin"

PROGRAM = r'''#!/usr/bin/python3
"""Stands in for Grafana: it is not Grafana."""
import base64, configparser, glob, http.server, json

settings = configparser.ConfigParser(interpolation=None)
settings.read_string("[DEFAULT]\n" + open("/etc/grafana/grafana.ini", encoding="utf-8").read())
# As Grafana does, it reads what was provisioned before it serves.
provisioned = sorted(glob.glob("/etc/grafana/provisioning/*/*.y*ml"))
for name in provisioned:
    open(name, encoding="utf-8").read()


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/api/health":
            status, said = 200, {"database": "ok", "version": "0.0.0", "commit": "stand-in", "stand_in": True, "provisioned": provisioned}
        elif self.path == "/api/user":
            status, said = 401, {"message": "Unauthorized"}
        else:
            status, said = 200, {"message": "This stands in for Grafana and shows nothing."}
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = settings["server"] if "server" in settings else {}
address = (server.get("http_addr") or "127.0.0.1", int(server.get("http_port") or 3000))
http.server.ThreadingHTTPServer(address, Answer).serve_forever()
'''

UNIT = """[Unit]
Description=Stands in for Grafana
After=network-online.target

[Service]
User=grafana
Group=grafana
ExecStart=/usr/sbin/grafana-server
Restart=on-failure

[Install]
WantedBy=multi-user.target
"""

CONTROL = f"""Package: grafana
Version: {VERSION}
Architecture: all
Maintainer: The Tandem authors
Depends: adduser, python3
Description: stands in for Grafana in Tandem's tests
 It has its paths, unit and health page and shows nothing.
"""

POSTINST = """#!/bin/sh
set -e
adduser --system --group --home /usr/share/grafana --no-create-home --shell /bin/false --quiet grafana
chown root:grafana /etc/grafana /etc/grafana/grafana.ini /etc/grafana/provisioning /etc/grafana/provisioning/*
chown grafana:grafana /var/lib/grafana /var/log/grafana
systemctl daemon-reload || true
"""


def make(folder: Path) -> Path:
    """Write the package into ``folder``; its file."""
    with tempfile.TemporaryDirectory(prefix="tandem-grafana-") as name:
        root = Path(name)
        root.chmod(0o755)
        files = {
            "DEBIAN/control": (CONTROL, 0o644),
            "DEBIAN/conffiles": ("/etc/grafana/grafana.ini\n", 0o644),
            "DEBIAN/postinst": (POSTINST, 0o755),
            "usr/sbin/grafana-server": (PROGRAM, 0o755),
            "lib/systemd/system/grafana-server.service": (UNIT, 0o644),
            "etc/grafana/grafana.ini": ("", 0o640),
        }
        for path, (text, mode) in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
            (root / path).chmod(mode)
        kinds = ("datasources", "dashboards", "alerting", "plugins", "access-control")
        for folder_name in (
            *(f"etc/grafana/provisioning/{kind}" for kind in kinds),
            "var/lib/grafana",
            "var/log/grafana",
            "usr/share/grafana",
        ):
            (root / folder_name).mkdir(parents=True)
        made = folder / f"grafana_{VERSION}_all.deb"
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", root, made], check=True, stdout=subprocess.DEVNULL)
        return made
