"""Roll-ups computed here, of records in memory, by what the table says of each field: what the database's must be."""

from collections import defaultdict

from tandem.schema.line_protocol import parse
from tandem_server.schema.rollups import ROLLUPS

STEP_S = {"minute": 60, "hour": 3600}
_FUNCTIONS = {"sum": sum, "min": min, "max": max, "last": lambda values: values[-1]}


def expected(lines, measurement, step):
    """By window and tags, the fields of each point. Of records of one time the order is that of ``lines``: keep times apart."""
    rollup, width_ns = ROLLUPS[measurement], STEP_S[step] * 10**9
    windows = defaultdict(list)
    points = {
        (p.measurement, tuple(sorted(p.tags.items())), p.utc_ns): p for p in map(parse, lines)
    }  # the same point once
    for point in sorted(points.values(), key=lambda one: one.utc_ns):
        if point.measurement == measurement:
            tags = tuple((tag, point.tags.get(tag, "")) for tag in sorted(rollup.tags))
            windows[point.utc_ns // width_ns * width_ns, tags].append(point.fields)
    return {key: _fields(rollup, records) for key, records in windows.items()}


def _fields(rollup, records):
    out = {"records": len(records)}
    for one in rollup.fields:
        values = [record[one.field] for record in records if one.field in record]
        if not values:
            continue
        if one.holds == "mean":
            out[one.field] = sum(values) / len(values)
            out[f"{one.field}_sum"], out[f"{one.field}_count"] = sum(values), len(values)
        else:
            out[one.field] = _FUNCTIONS[one.holds](values)
        for also in one.also:
            out[f"{one.field}_{also}"] = _FUNCTIONS[also](values)
        for word in one.words:
            said = sum(value is True if word == "true" else value == word for value in values)
            if said:
                out[f"{one.field}_{word}_count"] = said
    return out


def found(store, measurement, step):
    out = {}
    for series in store.query(f'SELECT * FROM "{step}"."{measurement}" GROUP BY *'):  # noqa: S608  of the schema
        tags = tuple((tag, series.tags.get(tag, "")) for tag in sorted(ROLLUPS[measurement].tags))
        assert set(series.tags) <= set(ROLLUPS[measurement].tags), series.tags
        for row in series.rows:
            fields = {n: v for n, v in zip(series.columns[1:], row[1:], strict=True) if v is not None}
            out[row[0], tags] = fields
    return out
