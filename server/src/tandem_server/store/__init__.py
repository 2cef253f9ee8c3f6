"""Time series: an InfluxDB spoken to over HTTP, a private instance of it on loopback, or VictoriaMetrics."""

from tandem_server.store.influx import Influx
from tandem_server.store.influx2 import Influx2
from tandem_server.store.kinds import LinesRefused, QueryError, Rejected, SeriesStore, StoreDown, TooManyRefused
from tandem_server.store.private import PrivateInflux, StoreStartError, find_influxd
from tandem_server.store.series import Series
from tandem_server.store.victoria import Victoria

__all__ = [
    "Influx",
    "Influx2",
    "LinesRefused",
    "PrivateInflux",
    "QueryError",
    "Rejected",
    "Series",
    "SeriesStore",
    "StoreDown",
    "StoreStartError",
    "TooManyRefused",
    "Victoria",
    "find_influxd",
]
