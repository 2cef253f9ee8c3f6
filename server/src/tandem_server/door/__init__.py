"""Who may come in, how many, how fast and for how long: what stands between the internet and every listener of TCP."""

from tandem_server.door.admission import Admitted, Door, DoorBounds
from tandem_server.door.rates import Buckets, ProbeRates, RateShare
from tandem_server.door.visit import Visit, come_in, count_lines, received_bytes

__all__ = [
    "Admitted",
    "Buckets",
    "Door",
    "DoorBounds",
    "ProbeRates",
    "RateShare",
    "Visit",
    "come_in",
    "count_lines",
    "received_bytes",
]
