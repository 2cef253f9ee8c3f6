"""Pages of HiLink's, ZTE's and Alcatel's web servers: what they tell, why they tell nothing, and what must not be believed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.at.dialogue import Response
from tandem.at.grammar import Final
from tandem.modem.base import Identity, Reading
from tandem.modem.hilink import decode as hilink_decode
from tandem.modem.hilink.xml import MAX_CHARACTERS, flat
from tandem.modem.registry import drivers
from tandem.modem.zte_web import decode as zte_decode

OK = Final("ok", "ok")


def page(*lines: str) -> Response:
    return Response("GET /", lines, OK)


def signal(**fields: str) -> Reading:
    body = "".join(f"<{name}>{value}</{name}>" for name, value in fields.items())
    return hilink_decode.decode([page(f"<response>{body}</response>")])


def goform(model: str = "", **fields: str) -> Reading:
    return zte_decode.decode([page(json.dumps(fields))], Identity("ZTE web", model))


@pytest.mark.parametrize(
    "document",
    [
        '<!DOCTYPE response [<!ENTITY a "-76dBm">]><response><rsrp>&a;</rsrp></response>',
        '<!DOCTYPE response SYSTEM "http://example.org/x.dtd"><response><rsrp>-76dBm</rsrp></response>',
        "<response><rsrp>-76dBm</rsrp>",
        "<response>" + "<a>" * 50 + "</a>" * 50 + "</response>",
        "<response><rsrp>-76dBm</rsrp></response>" + " " * MAX_CHARACTERS,
        "<response>" + "".join(f"<a{i}>1</a{i}>" for i in range(600)) + "</response>",
        "",
    ],
    ids=["entity", "external", "cut", "deep", "long", "wide", "empty"],
)
def test_a_document_that_no_stick_sends_is_refused(document: str) -> None:
    assert flat(document) == ("", {})
    assert hilink_decode.decode([page(document)]) == Reading()


def test_a_page_is_flat_whatever_is_deeper_in_it() -> None:
    assert flat("<response><a> 1 </a><b><c>2</c>3</b><d/></response>") == ("response", {"a": "1", "b": "3", "d": ""})


@given(st.text(max_size=200))
def test_any_text_is_a_page_or_none(text: str) -> None:
    root, found = flat(text)
    assert root or not found
    assert zte_decode.fault(page(text)) in (None, "not_json", "referer_missing")
    for driver in (drivers()["hilink"], drivers()["zte_web"], drivers()["alcatel"]):
        driver.decode([page(text)], Identity())


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("125002", "token_missing"),
        ("100003", "login_needed"),
        ("113018", "error 113018"),
        ("", "error"),
        ("<b/>", "error"),
    ],
)
def test_an_error_page_is_named(code: str, name: str) -> None:
    assert hilink_decode.fault(page(f"<error><code>{code}</code><message/></error>")) == name


def test_a_page_without_a_referer_and_a_login_page_are_named_and_an_answer_is_no_fault() -> None:
    assert hilink_decode.fault(page("<response><mode>7</mode></response>")) is None
    bodies = ('{"network_type":"LTE","lte_rsrp":""}', '{"network_type":"","lte_rsrp":""}', "<html>login</html>", "[1]")
    assert [zte_decode.fault(page(body)) for body in bodies] == [None, "referer_missing", "not_json", "not_json"]


@pytest.mark.parametrize(
    ("text", "dbm"),
    [("-95dBm", -95.0), ("&gt;=-51dBm", -51.0), ("&lt;=-113 dBm", -113.0), ("-95", -95.0), ("", None), ("--", None)],
)
def test_levels_of_hilink_lose_their_unit_and_keep_the_end_of_a_scale(text: str, dbm: float | None) -> None:
    assert signal(mode="7", rssi=text).rssi_dbm == dbm


@pytest.mark.parametrize(
    ("text", "tac"), [("53281", 53281), ("C3B7", 0xC3B7), ("1019", None), ("0", None), ("", None), ("FFFE", None)]
)
def test_an_area_that_may_be_in_either_base_is_not_known(text: str, tac: int | None) -> None:
    assert signal(mode="7", rsrp="-95dBm", tac=text).tac == tac


@pytest.mark.parametrize(("station", "eci"), [("0085510", 21890627), ("", 21890627), ("85511", None), ("x", 21890627)])
def test_a_cell_that_its_base_station_contradicts_is_not_known(station: str, eci: int | None) -> None:
    assert signal(mode="7", cell_id="21890627", enodeb_id=station).eci == eci


@pytest.mark.parametrize(
    ("service", "network", "state"), [("1", "19", "limited"), ("0", "0", "no_service"), ("2", "19", "unknown")]
)
def test_the_state_is_the_status_pages(service: str, network: str, state: str) -> None:
    assert signal(ServiceStatus=service, CurrentNetworkType=network).state == state


def test_a_network_that_it_is_not_registered_with_is_not_taken() -> None:
    assert signal(State="1", Numeric="24491").plmn is None
    assert signal(State="0", Numeric="24491").plmn == "24491"


@pytest.mark.parametrize(
    ("model", "text", "pci"),
    [
        ("MC801A", "77", 0x77),
        ("MF79U", "77", None),
        ("MF79U", "00A", 10),
        ("MF79U", "456", 456),
        ("MF79U", "5", 5),
        ("MC888", "456", 456),
        ("MF79U", "504", None),
        ("MF79U", "", None),
    ],
)
def test_a_pci_of_zte_is_read_in_the_base_that_is_known(model: str, text: str, pci: int | None) -> None:
    assert goform(model, network_type="LTE", lte_rsrp="-95", lte_pci=text).pci == pci


@pytest.mark.parametrize(
    ("text", "station", "eci"),
    [
        ("5A2C30B", "", 0x5A2C30B),
        ("94552843", "", 94552843),
        ("1212126", "74017", 0x1212126),
        ("1212126", "4734", 1212126),
        ("1212126", "1", None),
        ("", "74017", None),
    ],
)
def test_a_cell_of_zte_is_hexadecimal_unless_it_cannot_be(text: str, station: str, eci: int | None) -> None:
    assert goform(network_type="LTE", cell_id=text, enodeb_id=station).eci == eci


def test_a_model_that_its_own_page_names_is_as_one_that_is_known() -> None:
    for name in ({"model_name": "U50Pro"}, {"wa_inner_version": "BD_LVWRGBMC801AV1.0.0B09"}):
        assert goform(network_type="LTE", lte_rsrp="-95", lte_pci="77", **name).pci == 0x77


def test_left_overs_are_not_read() -> None:
    standalone = goform(network_type="SA", nr5g_rsrp="-80", lte_rsrp="-48", cell_id="5A2C30B")
    assert (standalone.rat, standalone.rsrp_dbm, standalone.eci) == ("NR-SA", -80.0, None)
    lte = goform(network_type="LTE", lte_rsrp="-90", nr5g_rsrp="-80", nr5g_pci="745", Z5g_SINR="5.0")
    assert (lte.nr_rsrp_dbm, lte.nr_pci, lte.nr_sinr_db) == (None, None, None)


def test_levels_that_stand_for_none_are_none() -> None:
    assert [goform(network_type="LTE", lte_rsrp=level).rsrp_dbm for level in ("-44", "0")] == [None, None]


def test_bars_are_no_quantity() -> None:
    bars = '{"signal":4,"sim_state":5}'
    told = {
        (bars,): Reading(),
        (bars, '{"network_type":11}'): Reading(rat="LTE"),
        ('{"network_type":99}',): Reading(),
        ('{"network_type":0}',): Reading(state="no_service"),
        ('{"network_type":false}',): Reading(),
    }
    assert {pages: drivers()["alcatel"].decode(list(map(page, pages)), Identity()) for pages in told} == told
