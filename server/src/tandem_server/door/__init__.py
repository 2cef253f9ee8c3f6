"""Who may come in, how many, how fast and for how long: what stands between the internet and every listener of TCP."""

from tandem_server.door.admission import Admitted, Door, DoorBounds, address_of
from tandem_server.door.rates import Buckets, ProbeRates, RateShare
from tandem_server.door.room import DAY_S, DaySpent, DiskShare, NoRoom, Reserve
from tandem_server.door.visit import Visit, come_in, count_lines, received_bytes

__all__ = [
    "DAY_S",
    "Admitted",
    "Buckets",
    "DaySpent",
    "DiskShare",
    "Door",
    "DoorBounds",
    "NoRoom",
    "ProbeRates",
    "RateShare",
    "Reserve",
    "Visit",
    "address_of",
    "come_in",
    "count_lines",
    "received_bytes",
]
