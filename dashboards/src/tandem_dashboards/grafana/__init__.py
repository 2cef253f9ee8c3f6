"""What Grafana does with a board: time ranges, macros and variables into queries, answers into frames. For ``check`` and ``preview``.

Written after Grafana's own source (releases 10.4 to 12): the query as its backend builds it (pkg/tsdb/influxdb/models/query.go), variables
as its front end puts them in (public/app/plugins/datasource/influxdb/datasource.ts, its template formats), intervals
(packages/grafana-data/src/datetime/rangeutil.ts), answers (pkg/tsdb/influxdb/influxql/…/response_parser.go).
"""
