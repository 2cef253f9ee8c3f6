"""Pages of HiLink's, ZTE's and Alcatel's web servers: what they tell, why they tell nothing, and what must not be believed."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tandem.at.dialogue import Response
from tandem.at.grammar import Final
from tandem.modem.base import Identity, Reading
from tandem.modem.families import drivers
from tandem.modem.families import hilink as hilink_decode
from tandem.modem.families import zte_web as zte_decode
from tandem.modem.families.hilink import MAX_CHARACTERS, flat

OK = Final("ok", "ok")


def page(*lines: str) -> Response:
    return Response("GET /", lines, OK)


def signal(**fields: str) -> Reading:
    body = "".join(f"<{name}>{value}</{name}>" for name, value in fields.items())
    return hilink_decode.decode([page(f"<response>{body}</response>")], Identity())


def goform(model: str = "", **fields: str) -> Reading:
    return zte_decode.decode([page(json.dumps(fields))], Identity("ZTE web", model))


def test_a_page_is_flat_and_a_document_that_no_stick_sends_is_refused():
    assert flat("<response><a> 1 </a><b><c>2</c>3</b><d/></response>") == ("response", {"a": "1", "b": "3", "d": ""})
    whole = "<response><rsrp>-76dBm</rsrp></response>"
    for document in (
        '<!DOCTYPE response [<!ENTITY a "-76dBm">]><response><rsrp>&a;</rsrp></response>',
        f'<!DOCTYPE response SYSTEM "http://example.org/x.dtd">{whole}',
        whole.removesuffix("</response>"),
        whole + " " * MAX_CHARACTERS,
    ):
        assert flat(document) == ("", {})
        assert hilink_decode.decode([page(document)], Identity()) == Reading()


@given(st.text(max_size=200))
def test_any_text_is_a_page_or_none(text):
    root, found = flat(text)
    assert root or not found
    assert zte_decode.fault(page(text)) in (None, "not_json", "referer_missing")
    for driver in (drivers()["hilink"], drivers()["zte_web"], drivers()["alcatel"]):
        driver.decode([page(text)], Identity())


def test_refusals_are_named_and_an_answer_is_no_fault():
    codes = {"125002": "token_missing", "113018": "error 113018", "<b/>": "error"}
    pages = {code: page(f"<error><code>{code}</code><message/></error>") for code in codes}
    assert {code: hilink_decode.fault(one) for code, one in pages.items()} == codes
    assert hilink_decode.fault(page("<response><mode>7</mode></response>")) is None
    bodies = ('{"network_type":"LTE","lte_rsrp":""}', '{"network_type":"","lte_rsrp":""}', "<html>login</html>", "[1]")
    assert [zte_decode.fault(page(body)) for body in bodies] == [None, "referer_missing", "not_json", "not_json"]


HILINK: list[tuple[dict[str, str], str, object]] = [
    # levels lose their unit and keep the end of a scale
    *(
        ({"mode": "7", "rssi": text}, "rssi_dbm", dbm)
        for text, dbm in (
            ("-95dBm", -95.0),
            ("&gt;=-51dBm", -51.0),
            ("&lt;=-113 dBm", -113.0),
            ("-95", -95.0),
            ("--", None),
        )
    ),
    # an area that may be in either base is not known
    *(
        ({"mode": "7", "rsrp": "-95dBm", "tac": text}, "tac", tac)
        for text, tac in (("53281", 53281), ("C3B7", 0xC3B7), ("1019", None), ("0", None), ("", None), ("FFFE", None))
    ),
    # a cell that its base station contradicts is not known
    *(
        ({"mode": "7", "cell_id": "21890627", "enodeb_id": station}, "eci", eci)
        for station, eci in (("0085510", 21890627), ("", 21890627), ("85511", None), ("x", 21890627))
    ),
    ({"ServiceStatus": "1", "CurrentNetworkType": "19"}, "state", "limited"),
    ({"ServiceStatus": "0", "CurrentNetworkType": "0"}, "state", "no_service"),
    ({"ServiceStatus": "2", "CurrentNetworkType": "19"}, "state", "unknown"),
    # a network that it is not registered with is not taken
    ({"State": "1", "Numeric": "24491"}, "plmn", None),
    ({"State": "0", "Numeric": "24491"}, "plmn", "24491"),
]
LTE = {"network_type": "LTE", "lte_rsrp": "-95"}
ZTE: list[tuple[dict[str, str], str, object]] = [
    # a PCI is read in the base that is known, by the model or the page that names it
    *(
        ({**LTE, "lte_pci": text, **model}, "pci", pci)
        for text, model, pci in (
            ("77", {"model": "MC801A"}, 0x77),
            ("77", {"model_name": "U50Pro"}, 0x77),
            ("77", {"wa_inner_version": "BD_LVWRGBMC801AV1.0.0B09"}, 0x77),
            ("456", {"model": "MC888"}, 456),
            *(
                (text, {"model": "MF79U"}, pci)
                for text, pci in (("77", None), ("00A", 10), ("456", 456), ("504", None), ("", None))
            ),
        )
    ),
    # a cell is hexadecimal unless it cannot be
    *(
        ({"network_type": "LTE", "cell_id": text, "enodeb_id": station}, "eci", eci)
        for text, station, eci in (
            ("5A2C30B", "", 0x5A2C30B),
            ("94552843", "", 94552843),
            ("1212126", "74017", 0x1212126),
            ("1212126", "4734", 1212126),
            ("1212126", "1", None),
            ("", "74017", None),
        )
    ),
    # levels that stand for none are none
    ({**LTE, "lte_rsrp": "-44"}, "rsrp_dbm", None),
    ({**LTE, "lte_rsrp": "0"}, "rsrp_dbm", None),
]


def test_fields_of_hilink_and_zte():
    told = [(fields, name, getattr(signal(**fields), name)) for fields, name, _ in HILINK]
    assert told == HILINK
    assert [(fields, name, getattr(goform(**fields), name)) for fields, name, _ in ZTE] == ZTE


def test_left_overs_are_not_read():
    standalone = goform(network_type="SA", nr5g_rsrp="-80", lte_rsrp="-48", cell_id="5A2C30B")
    assert (standalone.rat, standalone.rsrp_dbm, standalone.eci) == ("NR-SA", -80.0, None)
    lte = goform(network_type="LTE", lte_rsrp="-90", nr5g_rsrp="-80", nr5g_pci="745", Z5g_SINR="5.0")
    assert (lte.nr_rsrp_dbm, lte.nr_pci, lte.nr_sinr_db) == (None, None, None)


def test_bars_are_no_quantity():
    bars = '{"signal":4,"sim_state":5}'
    told = {
        (bars,): Reading(),
        (bars, '{"network_type":11}'): Reading(rat="LTE"),
        ('{"network_type":99}',): Reading(),
        ('{"network_type":0}',): Reading(state="no_service"),
        ('{"network_type":false}',): Reading(),
    }
    assert {pages: drivers()["alcatel"].decode(list(map(page, pages)), Identity()) for pages in told} == told
