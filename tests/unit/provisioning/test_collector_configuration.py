"""The configuration that the role collector writes is one that the collector takes, for each way to reach a modem."""

import json
import re
from pathlib import Path

import jinja2

from tandem.app.config import parse

REPOSITORY = Path(__file__).parents[3]
TEMPLATE = REPOSITORY / "ansible/roles/collector/templates/config.toml.j2"
GUIDE = REPOSITORY / "docs/field/hand-out.md"
HTTP = {"name": "b", "operator": "Blue", "usb": "1-1.3", "port": "http://192.168.8.1"}


def rendered(*paths, **variables):
    environment = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined)  # noqa: S701
    environment.filters |= {"to_json": lambda given, **_: json.dumps(given), "bool": bool}
    select = environment.filters["select"]
    environment.filters["select"] = jinja2.pass_context(lambda *given: list(select(*given)))  # Ansible makes it a list
    environment.tests["match"] = lambda text, pattern: re.match(pattern, text) is not None
    known = {
        "collector_probe": "kit-01", "tandem_server_name": "server.example", "collector_measurement_tls": False,
        "tandem_server_ports": {"gateway": 8443, "control": 8444, "measurement": 8480}, "tandem_ca_file": "",
        "tandem_paths_used": paths, "collector_settings": {"clock": {"source": "system"}},
        "tandem_status_led": {}, "tandem_e_paper": {}, "collector_city": "",
    }  # fmt: skip
    return environment.from_string(TEMPLATE.read_text()).render(known | variables)


def modem(path):
    return parse(rendered(path, HTTP), Path("/etc/tandem/config.toml")).paths[0].modem


def test_a_modem_is_reached_as_the_inventory_says():
    place, manager = {"usb": "1-1.2"}, {"usb": "1-1.2", "port": "modemmanager:1-1.2"}
    serial = {"interface": "wwan0", "port": "/dev/ttyUSB2", "driver": "quectel"}
    for wanted, port, usb, driver, apn in (
        (place, None, "1-1.2", "auto", None),
        (place | {"apn": "internet"}, None, "1-1.2", "auto", "internet"),
        ({"usb": "1-1.2:1.3", "apn": "internet", "driver": "quectel"}, None, "1-1.2", "quectel", "internet"),
        (manager, "modemmanager:1-1.2", None, "auto", None),
        (manager | {"apn": "x"}, "modemmanager:1-1.2", None, "auto", "x"),
        (serial, "/dev/ttyUSB2", None, "quectel", None),
    ):
        found = modem({"name": "a", "operator": "Red", **wanted})
        assert (found.port, found.usb, found.driver) == (port, usb, driver)
        assert (found.connection.apn if found.connection else None) == apn


def test_what_belongs_to_a_connection_is_the_operators():
    secret = {"pin": "0000", "password": "p", "user": "u", "roaming": True, "ip_type": "ipv4"}
    connection = modem({"name": "a", "usb": "1-1.2", "apn": "internet", **secret}).connection
    assert (connection.roaming, connection.user, connection.ip_type) == (True, "u", "ipv4")
    assert [str(connection.pin_file), str(connection.password_file)] == [
        "/run/credentials/tandem.service/pin-a",
        "/run/credentials/tandem.service/password-a",
    ]
    assert "0000" not in rendered({"name": "a", "usb": "1-1.2", "apn": "internet", **secret}, HTTP)


def test_the_light_the_paper_and_the_city_are_the_probes():
    def parsed(**given):
        return parse(rendered({"name": "a", "usb": "1-1.2"}, HTTP, **given), Path("/etc/tandem/config.toml"))

    assert (parsed().status_led, parsed().e_paper, parsed().city) == (None, None, None)
    assert parsed(collector_city="São Paulo").city == "São Paulo"
    config = parsed(tandem_status_led={"red": 17, "green": 27, "blue": 22}, tandem_e_paper={"call": "Ana"})
    assert list(config.status_led.leds.names) == ["tandem:red:status", "tandem:green:status", "tandem:blue:status"]
    assert (config.e_paper.call, config.e_paper.busy) == ("Ana", 24)
    config = parsed(tandem_status_led={"only": 17}, collector_settings={"e_paper": {"enabled": False}})
    assert list(config.status_led.leds.names) == ["tandem:only:status"]
    assert config.e_paper is None


def test_home_zones_are_taken_as_the_guide_has_them_typed():
    (typed,) = re.findall(r"asks for `(\[.*?\])`", GUIDE.read_text(encoding="utf-8"))
    position = {"mode": "coarse", "home_zone": json.loads(typed)}
    given = rendered({"name": "a", "usb": "1-1.2"}, HTTP, collector_settings={"position": position})
    (zone,) = parse(given, Path("/etc/tandem/config.toml")).position.zones
    assert (zone.latitude_deg, zone.longitude_deg, zone.radius_m) == (48.1372, 11.5756, 500)
