"""Time series: an InfluxDB 1.x spoken to over HTTP, and a private instance of it on loopback."""

from tandem_server.store.influx import Influx, QueryError, Rejected, StoreDown
from tandem_server.store.private import PrivateInflux, StoreStartError, find_influxd
from tandem_server.store.series import Series

__all__ = [
    "Influx",
    "PrivateInflux",
    "QueryError",
    "Rejected",
    "Series",
    "StoreDown",
    "StoreStartError",
    "find_influxd",
]
