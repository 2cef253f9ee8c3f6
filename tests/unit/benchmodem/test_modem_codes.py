"""The codings: every value lies in the bin that its code stands for."""

from __future__ import annotations

import pytest

from tandem_bench.modem import radio
from tandem_bench.modem.families import huawei

# name, code, lower edge of bin v, highest code, unknown: TS 27.007 8.5 and 8.69, Huawei's ^HCSQ
TABLES = [
    (radio.csq, lambda v: -113 + 2 * v, 31, 99),
    (radio.rsrp, lambda v: -141 + v, 97, 255),
    (radio.rsrq, lambda v: -20 + v / 2, 34, 255),
    (radio.rxlev, lambda v: -111 + v, 63, 99),
    (radio.rscp, lambda v: -121 + v, 96, 255),
    (radio.ecno, lambda v: -24.5 + v / 2, 49, 255),
    (radio.ss_rsrp, lambda v: v - 157, 126, 255),
    (radio.ss_rsrq, lambda v: (v - 87) / 2, 126, 255),
    (radio.ss_sinr, lambda v: (v - 47) / 2, 127, 255),
    (huawei.level_code, lambda v: -121 + v, 96, 255),
    (huawei.sinr_code, lambda v: -20.2 + v / 5, 251, 255),
    (huawei.ecio_code, lambda v: -32.5 + v / 2, 65, 255),
]
each_table = pytest.mark.parametrize(
    ("code", "lower", "top", "unknown"), TABLES, ids=lambda t: getattr(t, "__name__", "")
)


@each_table
def test_edges_of_all_bins(code, lower, top, unknown):
    assert [code(lower(v)) for v in range(top + 1)] == list(range(top + 1))
    assert code(lower(0) - 50) == 0
    assert code(lower(top) + 50) == top
    assert code(None) == unknown
