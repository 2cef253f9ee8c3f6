"""What people read: Go's templates as far as they are used, and every alarm's message."""

from support.grafana_alerting import rules
from support.grafana_templates import Told, message
from tandem_dashboards.alarms.provisioning import rules_document

LABELS = (("campaign", "chen"), ("device", "mmcblk0"), ("path", "a"), ("place", "traces"), ("probe", "kit-7"))


def every(values):
    for rule in rules(rules_document()):
        told = dict.fromkeys(rule.nodes, values)
        yield rule, Told(rule, LABELS, told, 1_795_300_000_000)


def test_every_alarm_says_what_since_when_what_to_do_and_where() -> None:
    for rule, told in every(7200.0):
        title, text = message([told])
        assert title == f"{rule.title}: 1"
        head, *lines = text.strip().splitlines()
        assert head == f"{rule.labels['severity']}: {rule.title}"
        assert [line.split(":")[0] for line in lines] == ["What", "Since", "Do", "Board"]
        assert "[no value]" not in text
        assert "{{" not in text
        assert "1e+" not in text
        assert all(len(line) > 12 for line in lines)
        assert lines[3].startswith("Board: https://grafana.example.org/d/tandem-")
        of_all = ("server-dead", "server-disk", "gateway-overloaded", "database-failing")
        assert ("kit-7" in text) == (rule.labels["alarm"] not in of_all)


def test_forty_alarms_are_one_message_and_what_is_over_is_one_line() -> None:
    (rule,) = (r for r in rules(rules_document()) if r.uid == "tandem-modem-lost")
    at = 1_795_300_000_000
    values = {"since": 754.0}
    many = [Told(rule, (("path", "a"), ("probe", f"kit-{n}")), values, at) for n in range(40)]
    over = Told(rule, (("path", "b"), ("probe", "kit-50")), values, at, at + 3_600_000)
    title, text = message([*many, over])
    assert title == "Modem is lost: 40, over: 1"
    assert text.count("What:") == 40
    assert "12m 34s" in text
    assert (
        text.rstrip().splitlines()[-1] == "Over: Modem is lost, probe kit-50, modem b (2026-11-21 22:26 to 23:26 UTC)"
    )
    assert message([over])[0] == "Over: Modem is lost"
