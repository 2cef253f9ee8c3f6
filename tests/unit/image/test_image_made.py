"""./kit image as a person types it: what is on the image, and what it says where it cannot be made."""

import json
import shutil
import time
from pathlib import Path

import jinja2
import pytest
import yaml

from support import stock_images
from tandem_image.cli import main

BASE = Path(__file__).parents[3] / "ansible/roles/base"


def written(place, **variables):
    """The text that the role writes to ``place`` with its defaults and ``variables``."""
    tasks = [one for file in sorted((BASE / "tasks").glob("*.yml")) for one in yaml.safe_load(file.read_text())]
    calls = [call for one in tasks for call in one.values() if isinstance(call, dict)]
    calls += yaml.safe_load((BASE / "vars/main.yml").read_text())["base_files"]
    (call,) = [call for call in calls if call.get("dest") == place]
    known = yaml.safe_load((BASE / "defaults/main.yml").read_text()) | {"tandem_checkout": BASE.parents[2]} | variables
    if "content" in call:
        return _rendered(call["content"], known)
    if call["src"].endswith(".j2"):
        return _rendered((BASE / "templates" / call["src"]).read_text(), known)
    return (BASE / "files" / _rendered(call["src"], known)).read_text()


def _rendered(text, known):
    environment = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined)  # noqa: S701
    return environment.from_string(text).render(known)


CODE = "invite_" + "c" * 43


@pytest.fixture(scope="module")
def images(stocks, lay_out, tmp_path_factory):
    """Kit-01's image of each release, for tests that only read it."""
    folder = tmp_path_factory.mktemp("made")
    fleet, made = lay_out(folder), {}
    for release in ("bookworm", "trixie"):
        made[release] = folder / f"{release}.img"
        words = ["kit-01", "-i", str(fleet), "--image", str(stocks[release].path), "--out", str(made[release])]
        assert main([*words, "--invite", str(folder / "kit-01.invite")]) == 0
    return made


@pytest.fixture(scope="module")
def brought(images):
    """By release: the files on the boot partition."""
    return {release: stock_images.boot_files(image) for release, image in images.items()}


@pytest.fixture
def made(fleet, stocks, monkeypatch):
    """Makes kit-01's image of a release, in the fleet's parent folder."""
    monkeypatch.chdir(fleet.parent)

    def make(release, *more):
        words = ["kit-01", "-i", "fleet", "--image", str(stocks[release].path), "--invite", "kit-01.invite", *more]
        assert main(words) == 0
        return stock_images.boot_files(fleet.parent / "kit-01.img")

    return make


def carried(files):
    """By path: mode and text, or where a link leads."""
    brought = stock_images.carried(files["firstrun.sh"])
    return {f"/{entry.name}": text if entry.issym() else (entry.mode, text) for entry, text in brought}


def test_only_the_boot_partition_is_changed(images, stocks):
    boot, root = stock_images.BOOT_START * 512, stock_images.ROOT_START * 512
    for release, made in images.items():
        stock, image = stocks[release].path.read_bytes(), made.read_bytes()
        assert (image[:boot], image[root:]) == (stock[:boot], stock[root:])
        assert made.stat().st_mode & 0o777 == 0o600


def test_bookworm_starts_it_by_the_kernels_command_line_and_grows_no_root(brought):
    files = brought["bookworm"]
    assert files["cmdline.txt"].count("\n") == 1
    words = files["cmdline.txt"].split()
    assert "firstboot" not in files["cmdline.txt"]
    assert "systemd.run=/boot/firmware/firstrun.sh" in words
    assert {"systemd.run_success_action=reboot", "systemd.unit=kernel-command-line.target", "rootwait"} <= set(words)
    assert {"usbcore.autosuspend=-1", "cfg80211.ieee80211_regdom=DE"} <= set(words)
    assert "user-data" not in files


def test_trixie_starts_it_by_cloud_init_and_grows_no_root(brought, stocks):
    files = brought["trixie"]
    assert " resize" not in files["cmdline.txt"]
    assert "systemd.run" not in files["cmdline.txt"]
    told = json.loads(files["user-data"].partition("\n")[2])
    assert (told["growpart"], told["resize_rootfs"], told["ssh_pwauth"]) == ({"mode": "off"}, False, False)
    for name in ("meta-data", "network-config"):
        assert files[name] == (stocks["trixie"].boot / name).read_text()


@pytest.mark.parametrize("release", ["bookworm", "trixie"])
def test_both_carry_the_same(brought, release):
    files = brought[release]
    assert "ssh" in files
    assert files["config.txt"].splitlines()[-2:] == ["dtparam=watchdog=on", "# END Tandem: watchdog (role base)"]
    there = carried(files)
    # So that a probe's first play changes none of them.
    for place in ("sudoers.d/tandem", "systemd/system.conf.d/90-tandem.conf", "ssh/sshd_config.d/10-tandem.conf"):
        place = f"/etc/{place}"
        assert there[place][1] == written(place, base_operator_user="tandem-admin")
    assert there["/etc/sudoers.d/tandem"][0] == 0o440
    assert there["/etc/systemd/system/userconfig.service"] == "/dev/null"
    mode, enrol = there["/etc/tandem/enrol.json"]
    told = {"probe": "kit-01", "gateway": "https://server.example:8443", "ca_file": "/etc/tandem/ca.pem"}
    assert (mode, json.loads(enrol)) == (0o600, {**told, "code": CODE})
    mode, wifi = there["/etc/NetworkManager/system-connections/tandem-wifi.nmconnection"]
    (named,) = [line for line in wifi.splitlines() if line.startswith("ssid=")]
    assert bytes(int(number) for number in named[5:].strip(";").split(";")).decode() == 'x y; "z – Ω'
    mode, mobile = there["/etc/NetworkManager/system-connections/tandem-mobile-1.nmconnection"]
    assert mode == 0o600
    assert {"type=gsm", "apn=internet.example", "username=web", "password=p;w"} <= set(mobile.splitlines())


def test_neither_the_wifi_password_nor_a_pin_is_on_it(brought):
    files = brought["trixie"]
    there = carried(files)
    texts = [*files.values(), *(entry[1] for entry in there.values() if isinstance(entry, tuple))]
    assert not [text for text in texts if "correct horse" in text or "pin=" in text]


def test_where_the_probe_finds_its_modems_networkmanager_finds_their_access_points(made, fleet):
    (fleet / "host_vars/kit-01.yml").write_text("tandem_paths: found\n")
    there = carried(made("trixie"))
    mobile = there["/etc/NetworkManager/system-connections/tandem-mobile-1.nmconnection"][1]
    assert "auto-config=true" in mobile.splitlines()


def test_without_wifi_and_enrolment_nothing_of_them_is_there(made, fleet):
    variables = json.loads((fleet / "group_vars/all.yml").read_text())
    del variables["tandem_wifi"]
    (fleet / "group_vars/all.yml").write_text(json.dumps(variables))
    files = made("bookworm", "--no-enrolment")
    there = carried(files)
    assert "regdom" not in files["cmdline.txt"]
    assert not [path for path in there if "enrol" in path or "wifi" in path or "NetworkManager.state" in path]


def test_a_packed_image_is_unpacked_and_a_cut_off_one_leaves_nothing(fleet, stocks, monkeypatch, capfd):
    monkeypatch.chdir(fleet.parent)
    shutil.copyfile(stocks["trixie"].path, "stock.img")
    packed = stock_images.packed(fleet.parent / "stock.img")
    words = ["kit-01", "-i", "fleet", "--image", "stock.img.xz", "--invite", "kit-01.invite"]
    assert main(words) == 0
    (fleet.parent / "kit-01.img").unlink()
    packed.write_bytes(packed.read_bytes()[:-1000])
    assert main(words) == 2
    assert "stock.img.xz: damaged or cut off; hint: " in capfd.readouterr().err
    assert not list(fleet.parent.glob("kit-01.img")) + list(fleet.parent.glob("*.unfinished"))


def test_what_is_no_fresh_image_of_the_two_releases_is_refused_in_a_line(fleet, images, tmp_path, monkeypatch, capsys):
    older = tmp_path / "older"
    older.mkdir()
    old = stock_images.make(older, "bookworm", {"config.txt": "dtparam=audio=on\n"})
    cases = {
        str(images["bookworm"]): "prepared before",
        "kit-01.invite": "no partition table",
        str(old.path): "neither bookworm nor trixie",
        "nowhere.img": "nowhere.img: there is no such file",
    }
    monkeypatch.chdir(fleet.parent)
    for image, said in cases.items():
        words = ["kit-01", "-i", "fleet", "--image", image, "--invite", "kit-01.invite", "--out", "other.img"]
        assert main(words) == 2
        told = capsys.readouterr().err
        assert (said in told, "; hint: " in told, told.count("\n")) == (True, True, 1), told
    assert not list(fleet.parent.glob("other*"))


def test_an_image_that_is_there_is_not_written_over(fleet, stocks, monkeypatch, capsys):
    monkeypatch.chdir(fleet.parent)
    (fleet.parent / "kit-01.img").write_text("another's")
    words = ["kit-01", "-i", "fleet", "--image", str(stocks["trixie"].path), "--invite", "kit-01.invite"]
    assert main(words) == 2
    assert "kit-01.img exists; hint: --out" in capsys.readouterr().err
    assert (fleet.parent / "kit-01.img").read_text() == "another's"


def test_each_image_has_a_spool_of_its_own_and_no_file_is_of_1970(brought):
    names = {carried(files)["/etc/tandem/spool.conf"][1] for files in brought.values()}
    assert {line.splitlines()[0] for line in names} == {f"partuuid={stock_images.DISK_ID:08x}-03"}
    assert len(names) == 2
    entries = [entry for entry, _ in stock_images.carried(brought["trixie"]["firstrun.sh"])]
    assert min(entry.mtime for entry in entries if entry.isfile()) > time.time() - 3600
