"""Time series in an InfluxDB 1.x, one's own or a private instance on loopback, with a VictoriaMetrics as its mirror; received traces."""

from tandem_server.store.influx import Influx
from tandem_server.store.kinds import LinesRefused, QueryError, Rejected, Series, SeriesStore, StoreDown, TooManyRefused
from tandem_server.store.private import PrivateInflux, StoreStartError, find_influxd
from tandem_server.store.victoria import Mirrored, Victoria

__all__ = [
    "Influx",
    "LinesRefused",
    "Mirrored",
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
