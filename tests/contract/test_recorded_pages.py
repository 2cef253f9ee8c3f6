"""What ``tandem modem record`` makes of a stick's web server keeps the contract of transcripts and holds no planted secret."""

import json
from collections.abc import Iterator

import pytest
import test_drivers as contract
from hypothesis import given
from hypothesis import strategies as st

from support.web_stick import WebStick, page
from tandem.cli.main import main
from tandem.modem.recorder import scrub_page

SECRETS = (
    "861234567890123", "244911234567890", "8935831122334455667", "+358401234567", "G4PDW18B02001234", "0C:5B:8F:27:9A:64",
    "Koti Ränta's, 4;A", "hunter2, 'n such", "100.72.3.44", "s1+/=", "tSeCrEt9", "0c5b8f279a64", "Maija Meikäläinen", "admin-maija",
)  # fmt: skip
IMEI, IMSI, ICCID, MSISDN, SERIAL, MAC, SSID, PASSWORD, WAN, SESSION, TOKEN, BARE_MAC, NAME, USER = SECRETS

HILINK = {
    "/api/device/signal": "<response><pci>211</pci><cell_id>94552843</cell_id><rsrp>-95dBm</rsrp><rsrq>-10dB</rsrq><sinr>9dB</sinr>"
    f"<mode>7</mode><Token>{TOKEN}</Token></response>",
    "/api/monitoring/status": "<response><CurrentNetworkType>19</CurrentNetworkType><CurrentNetworkTypeEx>101</CurrentNetworkTypeEx>"
    f"<ServiceStatus>2</ServiceStatus><WanIPAddress>{WAN}</WanIPAddress><msisdn>{MSISDN}</msisdn></response>",
    "/api/net/current-plmn": "<response><Numeric>24405</Numeric></response>",
    "/api/device/information": f"<response><DeviceName>E3372h</DeviceName><SerialNumber>{SERIAL}</SerialNumber><Imei>{IMEI}</Imei>"
    f"<Imsi>{IMSI}</Imsi><Iccid>{ICCID}</Iccid><Msisdn>{MSISDN}</Msisdn><SoftwareVersion>22.200.09.00.00</SoftwareVersion>"
    f"<MacAddress1>{MAC}</MacAddress1><WifiSsid><![CDATA[{SSID}]]></WifiSsid><WifiPassword>{PASSWORD}</WifiPassword>"
    f"<!-- {NAME} --><Owner login='{USER}'>x</Owner><SesInfo>{SESSION}</SesInfo><Other>{BARE_MAC} {WAN}</Other></response>",
    "/api/device/basic_information": f"<html><meta name='csrf_token' content='{TOKEN}'></html>",
}  # fmt: skip
GOFORM = {
    "model_name": "MF833V", "wa_inner_version": "BD_MF833V1.0.0B01", "network_type": "LTE", "rmcc": "244", "rmnc": "5", "lte_rsrp": "-95",
    "lte_rsrq": "-10", "cell_id": "5A2C30B", "wan_active_channel": "1300", "imei": IMEI, "sim_imsi": IMSI, "ziccid": ICCID,
    "msisdn": MSISDN, "SSID1": SSID, "wifi_password": PASSWORD, "wan_ipaddr": WAN, "mac_address": BARE_MAC,
    "RD": TOKEN, "hostName": NAME,
    "station_list": [{"hostname": NAME, "mac_addr": MAC}], "user_login": USER, "serialNumber": SERIAL,
}  # fmt: skip


@pytest.fixture
def stick() -> Iterator[WebStick]:
    served = WebStick()
    yield served
    served.close()


def serve(stick: WebStick, family: str) -> None:
    def hilink(target: str, headers: dict[str, str]) -> bytes:
        found = stick.hilink(target, headers)
        if b"<rsrp>" not in found:
            return found
        return page(HILINK.get(target, ""), status="200 OK" if target in HILINK else "404 No")

    def goform(target: str, _headers: dict[str, str]) -> bytes:
        known = "get_cmd" in target
        return page(json.dumps(GOFORM), f"Set-Cookie: zsid={TOKEN}\r\n") if known else page("", status="404 No")

    stick.behave = hilink if family == "hilink" else goform


@pytest.mark.parametrize("family", ["hilink", "zte_web"])
def test_a_recorded_stick_keeps_the_contract_and_tells_no_secret(family, stick, tmp_path):
    serve(stick, family)
    out = tmp_path / "made.json"
    assert main(["modem", "record", "--port", stick.url, "--out", str(out)]) == 0
    made = contract.Transcript(out, json.loads(out.read_text()))
    for faults in (contract.faults_of_text, contract.faults_of_record, contract.faults_of_answers):
        assert faults(family, made) == []
    content, text = made.content, out.read_text()
    assert content["driver"] == family
    asked = tuple(turn["send"] for turn in content["dialogue"])
    assert asked == contract.drivers()[family].poll_commands(contract.Identity())
    assert {"rsrp_dbm": -95.0, "eci": 94552843, "plmn": "24405"}.items() <= content["expected"].items()
    assert contract.choose(contract.AUTO, contract.Identity(**content["identity"])).name == family
    assert content["identity"]["model"] in ("E3372h", "MF833V")
    told = [secret for secret in (*SECRETS, stick.url) if secret in text or json.dumps(secret)[1:-1] in text]
    assert told == []
    assert "Ränta" not in text
    assert "\\u00e4" not in text


def test_a_server_that_answers_no_familys_questions_is_told_in_one_line(stick, tmp_path, capsys):
    stick.behave = lambda _target, _headers: page("<html>a printer</html>")
    assert main(["modem", "record", "--port", stick.url, "--out", str(tmp_path / "made.json")]) == 1
    assert "answers no family's questions (no_page_of_fields)" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "made.json").exists()


# fmt: off
NAMES = st.sampled_from(
    ["Imei", "WifiSsid", "ssid1", "mac_address", "wan_ipaddr", "TokInfo", "wifi_password", "SerialNumber", "MSISDN"]
)
WORDS = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="<>&\"'\\"), min_size=4, max_size=30
).filter(lambda word: sum(c.isalnum() for c in word) >= 4 and word.strip("0") == word)


@given(NAMES, WORDS)
def test_the_value_of_a_personal_field_never_stays(name, secret):
    for body in (f"<response><x>1</x><{name}>{secret}</{name}></response>", json.dumps({"x": "1", name: secret})):
        found = scrub_page(body)
        assert found is not None
        assert secret not in found


@given(st.text(max_size=200))
def test_any_page_is_scrubbed_or_left_out_and_scrubbing_twice_changes_nothing(body):
    found = scrub_page(body)
    assert found is None or scrub_page(found) == found
