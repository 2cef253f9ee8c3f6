"""The database's answer as Grafana's InfluxDB data source and its converter hand it to expressions.

After ``pkg/tsdb/influxdb/influxql`` (one frame a series and column, labels are the tags) and ``pkg/expr/converter.go`` of Grafana 11: of
the answer only the first statement's result counts. A column of texts or of yes and no is no series: Grafana leaves it out with a
warning in its log, and a rule over nothing else has no data. So an alarm asks for numbers only.
"""

from __future__ import annotations

from tandem_dashboards.alarms.evaluate.values import ExpressionError, NoData, Series, Values, labels


def read(answer: object) -> Values:
    """Series of a parsed JSON answer of ``/query`` with ``epoch=ms``; one ``NoData`` when there is none. ExpressionError."""
    if not isinstance(answer, dict):
        raise ExpressionError("the database's answer is no object")
    if "error" in answer:
        raise ExpressionError(f"the database says: {answer['error']}")
    results = answer.get("results")
    if not isinstance(results, list) or not results or not isinstance(results[0], dict):
        raise ExpressionError("the database's answer has no result")
    if "error" in results[0]:
        raise ExpressionError(f"the database says: {results[0]['error']}")
    found: list[Series] = []
    for row in results[0].get("series") or []:
        found += _columns(row)
    return tuple(found) or (NoData(),)


def _columns(row: object) -> list[Series]:
    if not isinstance(row, dict):
        raise ExpressionError("the database's answer has a series that is no object")
    try:
        columns, values, tags = row["columns"], row.get("values") or [], row.get("tags") or {}
        if columns[0] != "time":
            return []
        return [
            Series(labels(tags), tuple((int(line[0]), _number(line[index])) for line in values))
            for index in range(1, len(columns))
            if _numeric([line[index] for line in values])
        ]
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise ExpressionError(f"the database's answer has another shape: {error!r}") from error


def _numeric(cells: list[object]) -> bool:
    """The first cell that is not null gives the column its type; a column of nulls is one of numbers."""
    first = next((cell for cell in cells if cell is not None), None)
    return first is None or (isinstance(first, int | float) and not isinstance(first, bool))


def _number(cell: object) -> float | None:
    return float(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else None
