"""What people read: Go's templates as far as they are used, and every alarm's message."""

from hypothesis import given
from hypothesis import strategies as st

from support.grafana_alerting import rules
from support.grafana_templates import (
    TemplateError,
    Told,
    humanize_1024,
    humanize_duration,
    humanize_percentage,
    message,
    printed,
    render,
)
from support.hostile_json import said
from tandem_dashboards.alarms.provisioning import rules_document

DATA = {"Labels": {"probe": "kit 7&8"}, "Values": {"x": {"Value": 1536.0}}, "Items": [1, 2]}
LABELS = (("campaign", "chen"), ("device", "mmcblk0"), ("path", "a"), ("place", "traces"), ("probe", "kit-7"))


def test_a_template_is_rendered() -> None:
    rows = [
        ("{{ .Labels.probe }}", "kit 7&8"),
        ("{{ urlquery .Labels.probe }}", "kit+7%268"),
        ("{{ humanize1024 .Values.x.Value }}B", "1.5kiB"),
        ("{{ printf `%.1f` .Values.x.Value }}", "1536.0"),
        ("{{ .Labels.nothing }}", "[no value]"),
        ("{{ if .Labels.nothing }}a{{ else }}b{{ end }}", "b"),
        ("{{ if .Labels.probe }}a{{ end }}", "a"),
        ("{{ range .Items }}[{{ . }}]{{ end }}", "[1][2]"),
        ("{{ range .Labels.nothing }}x{{ else }}none{{ end }}", "none"),
        ("a  {{- ` b ` -}}  c", "a b c"),
        ('{{ define "t" }}<{{ . }}>{{ end }}{{ template "t" .Labels.probe }}', "<kit 7&8>"),
        ("{{ reReplaceAll `/*\\z` `` externalURL }}/d", "https://g.org/sub/d"),
        ("{{ len .Items }}", "2"),
    ]
    assert [
        (text, wanted)
        for text, wanted in rows
        if render(text, DATA, {"externalURL": lambda: "https://g.org/sub/"}) != wanted
    ] == []


def test_what_go_would_refuse_or_is_not_known_is_an_error() -> None:
    rows = [
        "{{ .Values.x.Value }}",
        "{{ nothing .Labels }}",
        "{{ if .Labels }}",
        "{{ end }}",
        "{{ .Labels.probe",
        "{{ }}",
        "{{ .Labels.nothing.more }}",
        '{{ template "none" . }}',
        "{{ .Labels.probe 3 }}",
        "{{ (.Labels.probe }}",
        "{{ $x }}",
        "{{ printf `%d` .Values.x.Value }}",
        "{{ printf `%d` }}",
        "{{ printf `a` 1 }}",
        "{{ .Labels }}",
        "{{ else }}",
    ]
    assert [text for text in rows if not said(TemplateError, render, text, DATA)] == []


@given(st.text(alphabet='{}- .Labesprobe`"()|ifendrg05%', max_size=60) | st.text())
def test_a_text_is_rendered_or_refused(text) -> None:
    try:
        render(text, DATA)
    except TemplateError:
        return


def test_durations_and_figures_as_prometheus_writes_them() -> None:
    rows = [
        (0, "0s"), (1, "1s"), (59.5, "59.5s"), (60, "1m 0s"), (3723.9, "1h 2m 3s"), (93_784, "1d 2h 3m 4s"), (0.5, "500ms"),
        (-61, "-1m 1s"), (float("inf"), "+Inf"),
    ]  # fmt: skip
    assert [(value, wanted) for value, wanted in rows if humanize_duration(value) != wanted] == []
    assert [humanize_1024(v) for v in (0, 1, 1000, 1024, 1.5 * 2**30)] == ["0", "1", "1000", "1ki", "1.5Gi"]
    assert [humanize_percentage(v) for v in (0.853, 1, 0.12345)] == ["85.3%", "100%", "12.35%"]
    assert printed("%.2f", 1.005) == "1.00"


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
