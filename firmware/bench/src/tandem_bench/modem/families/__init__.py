"""The families by name. To add one: write a module that ends in a ``Family`` and name it here."""

from tandem_bench.modem.dialogue import Family
from tandem_bench.modem.families import generic, huawei, quectel, ublox

FAMILIES: dict[str, Family] = {f.name: f for f in (generic.FAMILY, quectel.FAMILY, huawei.FAMILY, ublox.FAMILY)}
