"""The message that people get, as Grafana's notification templates: several alarms of one kind are one message."""

from __future__ import annotations

TITLE = '{{ template "tandem.title" . }}'
MESSAGE = '{{ template "tandem.message" . }}'

TEMPLATE = """\
{{ define "tandem.title" -}}
{{ if .Alerts.Firing }}{{ .CommonLabels.alertname }}: {{ len .Alerts.Firing }}
{{- if .Alerts.Resolved }}, over: {{ len .Alerts.Resolved }}{{ end }}
{{- else }}Over: {{ .CommonLabels.alertname }}{{ end }}
{{- end }}
{{ define "tandem.message" -}}
{{ range .Alerts.Firing -}}
{{ .Labels.severity }}: {{ .Labels.alertname }}
What:  {{ .Annotations.summary }}
Since: {{ .Annotations.since }} Told since {{ .StartsAt.UTC.Format "2006-01-02 15:04" }} UTC.
Do:    {{ .Annotations.do }}
Board: {{ .Annotations.board }}

{{ end -}}
{{ range .Alerts.Resolved -}}
Over: {{ .Labels.alertname }}{{ if .Labels.probe }}, probe {{ .Labels.probe }}{{ end }}
{{- if .Labels.path }}, modem {{ .Labels.path }}{{ end }} ({{ .StartsAt.UTC.Format "2006-01-02 15:04" }} to
{{- " " }}{{ .EndsAt.UTC.Format "15:04" }} UTC)
{{ end -}}
{{ end }}
"""
"""``alertname`` is the rule's title. No dollar sign: provisioning would take it for an environment variable."""
