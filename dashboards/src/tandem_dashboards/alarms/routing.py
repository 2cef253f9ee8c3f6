"""Who is told what, and when: contact points, policies, quiet hours, as provisioning files have them.

Addresses come from the environment of the Grafana server: ``TANDEM_ALARM_MAIL`` (several with ``;``) and ``TANDEM_ALARM_WEBHOOK``. A file
a way, so that whoever has no webhook leaves that file out; both speak as one contact point.
"""

from __future__ import annotations

from tandem_dashboards.alarms.words import MESSAGE, TEMPLATE, TITLE
from tandem_dashboards.alarms.yaml_text import Node

CONTACT = "Tandem"
FOLDER = "Tandem"
NIGHT = "Tandem: night"

Document = dict[str, Node]


def mail() -> Document:
    """By mail: needs [smtp] in grafana.ini."""
    settings: Document = {
        "addresses": "${TANDEM_ALARM_MAIL}",
        "singleEmail": True,
        "subject": TITLE,
        "message": MESSAGE,
    }
    return _contact("mail", "email", settings)


def webhook() -> Document:
    """A POST of JSON: chat bridges, pagers, own programs."""
    settings: Document = {
        "url": "${TANDEM_ALARM_WEBHOOK}",
        "httpMethod": "POST",
        "title": TITLE,
        "message": MESSAGE,
    }
    return _contact("webhook", "webhook", settings)


def policies() -> Document:
    """Alarms of one kind go together, so that a server that was away does not send forty messages.

    Critical: at once, again every four hours. Warning: within five minutes, again once a day. Info: not at night, again once a week.
    """
    return {
        "apiVersion": 1,
        "policies": [
            {
                "orgId": 1,
                "receiver": CONTACT,
                "group_by": ["grafana_folder", "alertname"],
                "group_wait": "5m",
                "group_interval": "15m",
                "repeat_interval": "1d",
                "routes": [
                    {
                        "receiver": CONTACT,
                        "object_matchers": [["severity", "=", "critical"]],
                        "group_wait": "30s",
                        "group_interval": "5m",
                        "repeat_interval": "4h",
                    },
                    {
                        "receiver": CONTACT,
                        "object_matchers": [["severity", "=", "info"]],
                        "repeat_interval": "7d",
                        "mute_time_intervals": [NIGHT],
                    },
                ],
            }
        ],
    }


def quiet() -> Document:
    """UTC: change it for a fleet far from Greenwich (``location`` is a name of the time zone database)."""
    times: list[Node] = [
        {"start_time": "21:00", "end_time": "24:00"},
        {"start_time": "00:00", "end_time": "06:00"},
    ]
    return {
        "apiVersion": 1,
        "muteTimes": [{"orgId": 1, "name": NIGHT, "time_intervals": [{"times": times, "location": "UTC"}]}],
    }


def templates() -> Document:
    """The messages' words."""
    return {"apiVersion": 1, "templates": [{"orgId": 1, "name": "tandem", "template": TEMPLATE}]}


def _contact(key: str, sort: str, settings: Document) -> Document:
    receiver: Document = {"uid": f"tandem-{key}", "type": sort, "settings": settings, "disableResolveMessage": False}
    return {"apiVersion": 1, "contactPoints": [{"orgId": 1, "name": CONTACT, "receivers": [receiver]}]}
