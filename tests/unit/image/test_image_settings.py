"""What people and inventories say, right and wrong: every mistake is one line that names its mend."""

import argparse
import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_image import bookworm, gather, parts, release, settings
from tandem_image.cli import main, parser
from tandem_image.errors import ImageError
from tandem_image.inventory import Variables

CODE = "invite_" + "c" * 43


def _flags(*words: str) -> argparse.Namespace:
    return parser().parse_args(["probe-7", *words])


def test_the_key_that_wifi_makes_of_a_password_is_the_standards_example():
    # IEEE 802.11-2020, J.4.2: passphrase "password", SSID "IEEE".
    made = settings.wifi("DE", "IEEE", "password")
    assert made is not None
    assert made.psk == "f42c6fc52df0ebef9ebb4b90b38a5f902e83fe1b135a70e23aed762e9710a12e"


@pytest.mark.parametrize(
    ("country", "ssid", "password", "said"),
    [
        (None, "home", None, "without a country"),
        ("de", None, None, "two capitals"),
        ("DE", None, "12345678", "without a network"),
        ("DE", "x" * 33, None, "1 to 32 bytes"),
        ("DE", "a\nb", None, "control characters"),
        ("DE", "home", "short", "8 to 63"),
        ("DE", "home", "pässword", "8 to 63"),
    ],
)
def test_a_wrong_wifi_is_told(country, ssid, password, said):
    with pytest.raises(ImageError, match=said):
        settings.wifi(country, ssid, password)


def test_a_public_key_is_checked_to_its_bytes(operator_key):
    kind, blob, comment = operator_key.split()
    assert settings.public_key(f"  {operator_key}".strip(), "x") == operator_key
    for wrong, said in (
        (f"{kind} {blob[:-8]}", "cut or changed"),
        (f"ssh-rsa {blob} {comment}", "cut or changed"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", r"private key; mend: .*\.pub"),
        ("hello", "no public SSH key"),
        (f"{kind} !!! x", "cut or changed"),
    ):
        with pytest.raises(ImageError, match=said):
            settings.public_key(wrong, "there")


@given(st.text())
def test_any_text_is_a_key_or_refused(text):
    try:
        assert settings.public_keys(text, "there") is not None
    except ImageError as error:
        if "mend" not in str(error) or "\n" in str(error):
            raise


@given(st.text())
def test_any_invitation_is_taken_or_refused_without_being_repeated(text):
    try:
        gather.invitation("probe-7", text)
    except ImageError as error:
        if "mend" not in str(error) or "\n" in str(error):
            raise


@given(st.text(), st.text())
def test_any_passwd_and_os_release_are_read(passwd, os_release):
    release.first_user(passwd)
    release.assignments(os_release)


@given(st.text(alphabet=st.characters(min_codepoint=32, exclude_categories=["C"]), min_size=1))
def test_a_key_files_text_is_on_one_line_and_is_what_went_in(text):
    written = parts.keyfile(text)
    assert "\n" not in written
    read = " " + written[2:] if written.startswith("\\s") else written
    assert read.replace("\\\\", "\\") == text


def test_a_network_whose_name_looks_like_a_list_of_numbers_is_written_as_its_bytes():
    made = bookworm.connection(settings.Wifi("DE", "1;2"), "1;2").decode().splitlines()
    assert "ssid=49;59;50;" in made


def test_sizes_and_gateways():
    told = {text: settings.size(text) for text in ("8G", "7500M", str(5 << 30))}
    assert list(told.values()) == [8 << 30, 7500 << 20, 5 << 30]
    for text in ("", "8", "8T", "-8G", "1G", "99999G", "8 G", "eight"):
        with pytest.raises(ImageError, match="mend"):
            settings.size(text)
    wrong = ["http://s:8443", "https://", "https://s/path", "https://u@s", "https://s:99999", "s:8443", "https://[::1"]
    for url in (*wrong, "https://s s"):
        with pytest.raises(ImageError, match="mend: https://HOST:8443"):
            settings.gateway(url)


@given(st.text(alphabet=string.printable))
def test_names_are_host_names(text):
    try:
        assert settings.probe_name(text) == text
    except ImageError:
        return
    assert set(text) <= set(string.ascii_lowercase + string.digits + "-")
    assert 1 <= len(text) <= 63


def test_flags_go_before_the_inventory_and_that_before_defaults(operator_key, tmp_path):
    (tmp_path / "invite").write_text(
        json.dumps({"probe": "probe-7", "code": CODE, "expires": "2027-01-01T00:00:00Z", "address": None})
    )
    told = Variables(
        {
            "tandem_operator_keys": [operator_key],
            "tandem_server_name": "server.example",
            "tandem_server_ports": {"gateway": 9443},
            "tandem_wifi": {"country": "DE", "ssid": "home", "password": "12345678"},
            "tandem_paths": [
                {"name": "a", "usb": "1-1.2", "apn": "one"},
                {"name": "b", "interface": "eth0"},
                {"name": "c", "usb": "1-1.3", "apn": "one"},
            ],
        }
    )
    made = gather.gather(_flags("--invite", str(tmp_path / "invite")), told)
    assert made.keys == (operator_key,)
    assert made.user == "tandem-admin"
    assert made.enrolment == settings.Enrolment("https://server.example:9443", CODE, None)
    assert made.bearers == (settings.Bearer("one"),)
    assert made.wifi is not None
    assert (made.wifi.country, made.wifi.ssid) == ("DE", "home")
    flags = _flags(
        "--no-enrolment", "--wifi-country", "FR", "--wifi-ssid", "other", "--root-size", "6G", "--user", "ops"
    )
    other = gather.gather(flags, told)
    assert other.wifi == settings.Wifi("FR", "other", None)  # the inventory's password is of the inventory's network
    assert (other.enrolment, other.root_bytes, other.user) == (None, 6 << 30, "ops")


def test_what_is_missing_or_wrong_in_the_inventory_is_told(operator_key):
    with pytest.raises(ImageError, match="probe invite probe-7 --json"):
        gather.gather(_flags(), Variables({"tandem_operator_keys": [operator_key]}))
    for wrong, said in (
        ({"tandem_operator_keys": []}, "no SSH key; mend: --ssh-key"),
        ({"tandem_operator_keys": operator_key}, "no list"),
        ({"tandem_wifi": {"country": False}}, "put it into quotes"),
        ({"tandem_wifi": {"contry": "DE"}}, "no key 'contry'"),
        ({"tandem_paths": {"a": 1}}, "no list"),
        ({"tandem_paths": [{"apn": 5}]}, "into quotes"),
    ):
        with pytest.raises(ImageError, match=said):
            gather.gather(_flags("--no-enrolment"), Variables({"tandem_operator_keys": [operator_key]} | wrong))


def test_an_invitation_of_another_probe_is_refused(operator_key, tmp_path):
    (tmp_path / "invite").write_text(json.dumps({"probe": "probe-8", "code": CODE}))
    flags = _flags("--invite", str(tmp_path / "invite"), "--gateway", "https://s:8443")
    with pytest.raises(ImageError, match="for 'probe-8', not 'probe-7'"):
        gather.gather(flags, Variables({"tandem_operator_keys": [operator_key]}))


def test_a_cas_private_key_does_not_get_onto_a_probe(operator_key, tmp_path):
    (tmp_path / "invite").write_text(CODE)
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n")
    flags = _flags(
        "--invite", str(tmp_path / "invite"), "--gateway", "https://s:8443", "--ca-file", str(tmp_path / "ca.pem")
    )
    with pytest.raises(ImageError, match="private key"):
        gather.gather(flags, Variables({"tandem_operator_keys": [operator_key]}))


def test_secrets_are_in_no_settings_that_are_printed(operator_key):
    made = settings.Settings(
        "p",
        "u",
        (operator_key,),
        settings.wifi("DE", "home", "12345678"),
        (settings.Bearer("a", "b", "secret"),),
        settings.Enrolment("https://s", CODE, None),
    )
    text = repr(made) + repr(Variables({"tandem_wifi": {"password": "12345678"}}))
    assert not any(secret in text for secret in ("12345678", "secret", CODE))
    assert made.wifi is not None
    assert str(made.wifi.psk) not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "which probe"),
        (["Probe 7"], "no host name"),
        (["probe-7", "--inventory", "/nowhere"], "no inventory /nowhere"),
        (["probe-7", "--ssh-key", "/nowhere.pub"], "No such file"),
        (
            ["probe-7", "--card", "/dev/nowhere", "--no-enrolment", "--ssh-key", "KEY", "--image", "/nowhere.img"],
            "no /dev/nowhere",
        ),
        (["probe-7", "--no-enrolment", "--ssh-key", "KEY", "--image", "/nowhere.img"], "no /nowhere.img"),
        (["probe-7", "--no-enrolment", "--ssh-key", "KEY"], "which image"),
    ],
)
def test_the_program_says_it_in_a_line_and_ends_with_2_or_1(operator_key, tmp_path, monkeypatch, capsys, words, said):
    (tmp_path / "key.pub").write_text(operator_key)
    monkeypatch.chdir(tmp_path)
    status = main([word.replace("KEY", str(tmp_path / "key.pub")) for word in words])
    told = capsys.readouterr()
    assert (status, told.out) == (1 if "--card" in words else 2, "")
    assert said in told.err
    assert told.err.count("\n") == 1
