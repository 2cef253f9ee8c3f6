"""The link's program: where it is found, how it fails; the topology's address plan; what the machine lacks."""

import re
import sys
from ipaddress import IPv4Network
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_bench import requirements
from tandem_bench.cli.main import main
from tandem_bench.link import Constant, LinkError, LinkProcess, LinkSpec
from tandem_bench.topology.spec import SERVER_NETWORK, SpecError, TopologySpec, commuting, mobile


def program(path, text="#!/bin/sh\nexit 3\n"):
    path.write_text(text)
    path.chmod(0o755)
    return path


def spec(**more):
    return LinkSpec("/proc/1/ns/net", "wwan0", "/proc/2/ns/net", "ran0", Constant(1e6, 2e6), **more)


def test_the_environment_comes_first(monkeypatch, tmp_path):
    monkeypatch.setenv(requirements.LINK, str(program(tmp_path / "mine")))
    assert requirements.find_link() == tmp_path / "mine"


def test_a_missing_program_or_a_file_that_cannot_be_run_says_how_to_get_it(monkeypatch, tmp_path):
    program(tmp_path / "text").chmod(0o644)
    for name in ("none", "text"):
        monkeypatch.setenv(requirements.LINK, str(tmp_path / name))
        with pytest.raises(requirements.MachineError, match=r"TANDEM_LINK names it.*hint: \./kit setup"):
            requirements.find_link()


def test_the_repository_is_searched(monkeypatch, tmp_path):
    monkeypatch.delenv(requirements.LINK, raising=False)
    monkeypatch.setattr(requirements, "REPOSITORY", tmp_path)
    (tmp_path / "build" / "bin").mkdir(parents=True)
    with pytest.raises(requirements.MachineError, match=r"build/bin/tandem-link.*\./kit setup"):
        requirements.find_link()
    program(tmp_path / "build" / "bin" / "tandem-link")
    assert requirements.find_link() == tmp_path / "build" / "bin" / "tandem-link"


def test_the_command_line_without_a_program_ends_with_3(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv(requirements.LINK, str(tmp_path / "none"))
    assert main(["link", "--help"]) == 3
    assert capsys.readouterr().err.count("\n") == 1


def test_a_program_that_ends_at_once_gives_its_last_line(monkeypatch, tmp_path):
    failing = program(tmp_path / "link", "#!/bin/sh\necho noise >&2\necho 'tandem-link: no TUN here' >&2\nexit 3\n")
    monkeypatch.setenv(requirements.LINK, str(failing))
    with pytest.raises(LinkError, match=r"^tandem-link has ended: no TUN here$"):
        LinkProcess(spec(), wait_s=60).start()


def test_a_program_that_does_not_answer_is_ended(monkeypatch, tmp_path):
    monkeypatch.setenv(requirements.LINK, str(program(tmp_path / "link", "#!/bin/sh\nexec sleep 60\n")))
    link = LinkProcess(spec(), wait_s=0.2)
    with pytest.raises(LinkError, match=r"does not answer within 0\.2 s"):
        link.start()
    with pytest.raises(LinkError, match="does not run"):
        link.set("down", "rate", 1)
    assert link.stop() is None


def test_answers_are_read_line_by_line(monkeypatch, tmp_path):
    script = (
        '#!/bin/sh\nprintf "rea"; sleep 0.05; printf "dy\\n"\nread a; echo "ok"\nread b; echo "error: no $b"; read c\n'
    )
    monkeypatch.setenv(requirements.LINK, str(program(tmp_path / "link", script)))
    with LinkProcess(spec(), wait_s=60) as link:
        link.set("down", "rate", 5)
        with pytest.raises(LinkError, match=r"^tandem-link: no clear up loss$"):
            link.clear("up", "loss")


OFFER = Constant(1e6, 1e6)


@given(st.integers(1, 61), st.booleans(), st.booleans())
def test_no_two_networks_overlap_and_metrics_differ(count, wifi, wired):
    accesses = commuting({f"p{n}": OFFER for n in range(count)}, OFFER if wifi else None, OFFER if wired else None)
    networks = [SERVER_NETWORK, *(n for access in accesses for n in (access.network, access.uplink))]
    assert not any(left.overlaps(right) for left, right in combinations(networks, 2))
    assert len({access.metric for access in accesses}) == len(accesses)
    for access in accesses:
        assert {access.gateway, access.address.ip} == set(access.network.hosts())
        assert {access.internet_side, access.public_address} == set(access.uplink.hosts())
        assert access.uplink.subnet_of(IPv4Network("198.51.100.0/24"))
    TopologySpec(accesses)


def test_what_cannot_be_is_refused():
    a, b = mobile("a", 0, OFFER), mobile("b", 0, OFFER)
    for make, message in (
        (lambda: TopologySpec(()), "0 access networks"),
        (lambda: TopologySpec((a,), servers=3), "3 server addresses"),
        (lambda: TopologySpec((a, mobile("a", 1, OFFER))), "the same path: a, a"),
        (lambda: TopologySpec((a, b)), "the same interface: wwan0, wwan0"),
        (lambda: mobile("A b", 0, OFFER), "path 'A b'"),
        (lambda: mobile("a", 63, OFFER), "index 63"),
    ):
        with pytest.raises(SpecError, match=re.escape(message)):
            make()


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("os.geteuid", lambda: 1000, "not root.*sudo"),
        ("shutil.which", lambda name: None if name == "nft" else "/x", "nft not found; hint: apt-get install nftables"),
        ("Path.exists", lambda self: "/net/mptcp" not in str(self), "no Multipath TCP"),
        ("Path.exists", lambda self: str(self) != "/dev/net/tun", "/dev/net/tun is missing; hint: modprobe tun"),
    ],
)
def test_what_the_machine_lacks_is_one_line_with_its_mend(monkeypatch, attribute, value, message):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda _: "/x")
    monkeypatch.setattr(f"tandem_bench.requirements.{attribute}", value)
    monkeypatch.setenv(requirements.LINK, sys.executable)
    with pytest.raises(requirements.MachineError, match=message) as caught:
        requirements.require()
    assert "\n" not in str(caught.value)
