"""The provisioning files of alarms: ``dashboards/provisioning/alerting/``. Generated, committed, never edited."""

from __future__ import annotations

from pathlib import Path

from tandem_dashboards.alarms import routing
from tandem_dashboards.alarms.model import INTERVAL_S, rule
from tandem_dashboards.alarms.routing import FOLDER, Document
from tandem_dashboards.alarms.rules import GROUPS
from tandem_dashboards.alarms.yaml_text import to_yaml

PROVISIONED = Path(__file__).resolve().parents[3] / "provisioning" / "alerting"
"""In a checkout. An installed package has no such folder, and is told one."""

_MADE = "Made by python -m tandem_dashboards generate; change tandem_dashboards/alarms instead."


def rules_document() -> Document:
    """All groups, as Grafana reads them."""
    return {
        "apiVersion": 1,
        "groups": [
            {
                "orgId": 1,
                "name": name,
                "folder": FOLDER,
                "interval": f"{INTERVAL_S}s",
                "rules": [rule(alarm) for alarm in alarms],
            }
            for name, alarms in GROUPS.items()
        ],
    }


def texts() -> dict[str, str]:
    """File name → text."""
    return {
        "rules.yaml": to_yaml(rules_document(), _MADE),
        "contact-mail.yaml": to_yaml(routing.mail(), f"{_MADE}\nLeave it out if nobody is told by mail."),
        "contact-webhook.yaml": to_yaml(routing.webhook(), f"{_MADE}\nLeave it out if there is no webhook."),
        "policies.yaml": to_yaml(routing.policies(), _MADE),
        "quiet-hours.yaml": to_yaml(routing.quiet(), _MADE),
        "templates.yaml": to_yaml(routing.templates(), _MADE),
    }


def drift(folder: Path = PROVISIONED) -> list[str]:
    """Names of files in ``folder`` that are not what the alarms make, are missing, or are of none."""
    wanted = texts()
    there = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.y*ml")} if folder.is_dir() else {}
    return sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))


def write(folder: Path = PROVISIONED) -> list[str]:
    """Write every file, take away those that are of none; the names of files that changed."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = texts()
    changed = drift(folder)
    for name in changed:
        if name in wanted:
            (folder / name).write_text(wanted[name], encoding="utf-8")
        else:
            (folder / name).unlink()
    return changed
