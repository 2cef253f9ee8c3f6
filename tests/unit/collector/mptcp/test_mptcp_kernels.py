"""Two kernels behind one interface, the v0.94 one a stand-in of its files and options (``v094_tree``); sysctls."""

import errno
import json
import os
import socket
import ssl
from dataclasses import replace
from types import SimpleNamespace

import pytest

from support.hostile_json import said
from support.v094_tree import Connection, Tree
from tandem import campaigns
from tandem.app.campaign import request
from tandem.app.campaign.request import settings, settled
from tandem.campaigns import load
from tandem.cli.campaign import kernel_lines
from tandem.experiment.reachability.pinging import Pinger
from tandem.experiment.traceroute import Plan, trace
from tandem.export.gateway import Bound, GatewayAddress
from tandem.mptcp import kernels, sockets, sysctls, watch
from tandem.mptcp.kernel_v094 import V094, FullMesh
from tandem.mptcp.kernels import Kernel, here
from tandem.mptcp.paths import Path, Paths
from tandem.mptcp.watch import NamespaceOrders
from tandem.mptcp_abi import Address, described, v094
from tandem.mptcp_abi.reader import Reader, StatisticsError
from tandem.mptcp_abi.v094 import MultipathSocket
from tandem.schema.campaign import CampaignError


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def stock(root, **values):
    for name, value in {"enabled": "1", "scheduler": "default", "path_manager": "kernel", **values}.items():
        (root / "proc/sys/net/mptcp").mkdir(parents=True, exist_ok=True)
        (root / "proc/sys/net/mptcp" / name).write_text(value + "\n")
    return root


def test_the_out_of_tree_kernel_is_known_by_its_files_and_named_by_its_linux(tmp_path):
    releases = {"4.14.127.mptcp": "v0.94", "4.19.126": "v0.95", "5.4.86-rt": "v0.96", "4.20.1": "v0.9x"}
    for release, name in releases.items():
        found = here(Tree(tmp_path / release, release).root)
        assert (found.name, found.protocol) == (name, 0)
        assert isinstance(found.path_manager(), FullMesh)
        assert ("has not run" in found.untried) == (name != "v0.94")


def test_plain_and_other_kernels_are_named_with_what_they_lack(tmp_path):
    found = here(stock(tmp_path))
    assert (found.name, found.protocol, found.untried, found.scheduler()) == ("upstream", 1, None, "stock")
    none = here(tmp_path / "elsewhere")
    assert (none.name, none.scheduler(), none.schedulers(), none.counters()) == ("upstream", None, {}, {})
    assert none.notes()[0].startswith("this kernel has no Multipath TCP")
    missing = Kernel().missing_requirement
    assert "net.mptcp.enabled=1" in missing(OSError(errno.ENOPROTOOPT, ""), socket.AF_INET)
    assert "CONFIG_MPTCP_IPV6" in missing(OSError(errno.EINVAL, ""), socket.AF_INET6)
    assert missing(OSError(errno.EMFILE, ""), socket.AF_INET) is None


def test_both_tell_of_themselves_alike(tmp_path, monkeypatch):
    for name, root in (("upstream", stock(tmp_path / "stock")), ("v0.94", Tree(tmp_path / "old").root)):
        monkeypatch.setattr(sysctls, "ROOT", root / "proc/sys")
        kernel = here(root)
        assert kernel.name == name
        now = kernel.scheduler()
        assert sysctls.read([kernel.scheduler_sysctl])[kernel.scheduler_sysctl] == kernel.schedulers()[now]
        assert kernel.scheduler_sysctl in kernel.sysctls
        assert all(sysctl.startswith("net.mptcp.") for sysctl in kernel.sysctls)
        assert {"scheduler", "path_manager"} <= kernel.settings().keys()
        assert all("\n" not in note for note in kernel.notes())
        assert isinstance(kernel.path_manager(), FullMesh) == (name == "v0.94")


@pytest.fixture
def asked(monkeypatch):
    """What setsockopt is asked on sockets, of which this machine's kernel is told nothing: 42 is another option here."""
    calls = []
    monkeypatch.setattr(socket.socket, "setsockopt", lambda _, *words: calls.append(words), raising=False)
    return calls


def test_multipath_is_asked_for_and_plain_tcp_too(tree, asked):
    kernel = V094(tree.root)
    with (
        kernel.open_socket(socket.AF_INET, multipath=True) as one,
        kernel.open_socket(socket.AF_INET, multipath=False) as other,
    ):
        assert asked == [(socket.IPPROTO_TCP, 42, 1), (socket.IPPROTO_TCP, 42, 0)]
        assert isinstance(one, MultipathSocket)
        assert not isinstance(other, MultipathSocket)


def test_what_goes_over_one_path_for_its_own_sake_is_plain_tcp(monkeypatch):
    """The gateway's records, a survey's pings, a trace: with mptcp_enabled=1 each would have subflows on every path."""
    asked = []

    def refuse(_kernel, _family, *, multipath):
        asked.append(multipath)
        raise OSError(errno.ENETUNREACH, "refused")

    monkeypatch.setattr(Kernel, "open_socket", refuse)
    monkeypatch.setattr(kernels, "here", Kernel)
    address = GatewayAddress("127.0.0.1", 8443, ssl.create_default_context(), "token")
    with pytest.raises(OSError, match="refused"):
        Bound(address, None, 1.0, 1.0, None).connect()
    with pytest.raises(OSError, match="refused"):
        Pinger("lo", 80, 1000.0, 1.0).ping(["127.0.0.1"], {}, lambda: False)
    assert trace("lo", ("127.0.0.1", 80), Plan("tcp", 1, 1, 1.0, 1), lambda: False).ended == "refused"
    assert asked == [False] * 3


def test_where_it_is_off_that_is_said_and_tcp_goes_on(tmp_path, monkeypatch):
    def refuse(*_words):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(socket.socket, "setsockopt", refuse, raising=False)
    kernel = V094(Tree(tmp_path, mptcp_enabled="0").root)
    with pytest.raises(PermissionError) as caught:
        kernel.open_socket(socket.AF_INET, multipath=True)
    assert "sysctl net.mptcp.mptcp_enabled=1" in kernel.missing_requirement(caught.value, socket.AF_INET)
    kernel.open_socket(socket.AF_INET, multipath=False).close()
    with pytest.raises(PermissionError):
        V094(Tree(tmp_path / "on").root).open_socket(socket.AF_INET, multipath=False)
    assert kernel.missing_requirement(OSError(errno.EMFILE, ""), socket.AF_INET) is None


def test_schedulers_and_counters_are_what_its_files_have(tree, tmp_path):
    kernel = V094(tree.root)
    assert (kernel.scheduler(), kernel.schedulers()) == ("minsrtt", {"minsrtt": "default"})
    tree.module("mptcp_rr", num_segments="1")
    tree.write("lib/modules/4.14.110/modules.builtin", "kernel/net/mptcp/mptcp_redundant.ko")
    assert kernel.schedulers() == {"minsrtt": "default", "roundrobin": "roundrobin", "redundant": "redundant"}
    tree.write("proc/sys/net/mptcp/mptcp_scheduler", "own")
    assert (kernel.scheduler(), kernel.schedulers()["own"]) == ("own", "own")
    upstream = Kernel(stock(tmp_path / "new", available_schedulers="default bpf_rr"))
    assert upstream.schedulers() == {"stock": "default", "bpf_rr": "bpf_rr"}
    tree.write("proc/net/mptcp_net/snmp", f"{'MPJoinSynTx':32}\t99")  # the process's
    assert kernel.counters() == {"MPCapableSYNRX": 0, "MPCapableSYNTX": 4, "MPJoinSynTx": 2}
    tree.write("proc/thread-self/net/mptcp_net/snmp", "nonsense")
    assert kernel.counters() == {}


def test_a_coupled_controller_is_there_once_its_module_is_and_before_is_refused_with_the_command(tree):
    kernel = V094(tree.root)
    assert kernel.controllers() == {"cubic", "reno"}
    assert [kernel.brings.get(n) for n in ("lia", "olia", "vegas")] == [
        "modprobe mptcp_coupled",
        "modprobe mptcp_olia",
        None,
    ]
    tree.write("proc/sys/net/ipv4/tcp_available_congestion_control", "cubic reno lia olia")
    assert {"lia", "olia"} <= kernel.controllers()
    paper = load("mohan-congestion")
    with pytest.raises(CampaignError, match=r"controller olia \(the server's kernel has none: modprobe mptcp_olia\)"):
        settled(paper, allow=False, kernel=V094(tree.root), there=lambda wanted: dict.fromkeys(wanted, False))


def test_what_that_kernel_lacks_and_what_spoils_a_measurement_is_said(tree, tmp_path):
    said = "\n".join(V094(tree.root).notes())
    for words in ("not in the field", "create_on_err", "server must run such a kernel", "CAP_NET_RAW", "no losses"):
        assert words in said
    assert "modprobe mptcp_fullmesh" not in said
    tree.write("sys/module/mptcp_fullmesh/parameters/create_on_err", "1")
    assert "create_on_err" not in "\n".join(V094(tree.root).notes())
    for values, words in (({"mptcp_enabled": "0"}, "is off"), ({"mptcp_version": "1"}, "mptcp_version=0")):
        assert words in "\n".join(V094(Tree(tmp_path / words, **values).root).notes())


def test_a_connections_own_scheduler_is_told(tree, monkeypatch):
    names = {43: b"redundant\0", 44: b"fullmesh\0\0"}
    monkeypatch.setattr(
        socket.socket, "getsockopt", lambda _, _level, option, size: names[option][:size], raising=False
    )
    with socket.socket() as connection:
        assert V094(tree.root).settings(connection) == {"scheduler": "redundant", "path_manager": "fullmesh"}
    assert V094(tree.root).settings() == {"scheduler": "default", "path_manager": "fullmesh"}


ONE = (("10.64.1.2", 40_000), ("203.0.113.10", 8080), 7000)
TWO = (("10.65.1.2", 40_001), ("203.0.113.10", 8080), 3000)


def test_subflows_are_read_with_numbers_that_stay(tree, monkeypatch):
    kernels = Connection([ONE, TWO], monkeypatch)
    with MultipathSocket() as connection:
        reader = Reader(connection, tree.root)
        sample = reader.read()
        assert [(s.id, s.local, s.tcp.bytes_received, s.tcp.rtt_us) for s in sample.subflows] == [
            ("1", Address("10.64.1.2", 40_000), 7000, 1000),
            ("2", Address("10.65.1.2", 40_001), 3000, 2000),
        ]
        assert (sample.fallback, sample.alive, sample.total) == (False, 2, 2)
        assert (sample.mptcp.bytes_received, sample.mptcp.bytes_acked, sample.mptcp.token) == (10_000, 1234, None)
        kernels.rows = [TWO]
        assert [s.id for s in reader.read().subflows] == ["2"]
        kernels.rows = [ONE, TWO]
        late = Reader(connection, tree.root).read()
        assert [(s.id, s.local.host) for s in late.subflows] == [("1", "10.64.1.2"), ("2", "10.65.1.2")]


class Answering(MultipathSocket):
    """A connection of that kernel, or one that fell back; ``manager``: its path manager."""

    __slots__ = ("manager", "multipath")

    def getsockopt(self, level, option, *_size):
        assert level == socket.IPPROTO_TCP
        return {42: self.multipath, 43: b"default\0", 44: self.manager.encode() + b"\0"}[option]


def test_a_connection_that_left_fullmesh_is_a_failure_and_one_that_fell_back_is_a_result(tree):
    kernel = V094(tree.root)
    with Answering() as connection:
        connection.multipath, connection.manager = 1, "fullmesh"
        assert kernel.fault(connection) is None
        connection.manager = "default"
        assert "opens no second subflow" in kernel.fault(connection)
        connection.multipath = 0
        assert kernel.fault(connection) is None
        assert Kernel().fault(connection) is None


def test_the_failure_is_told_by_the_connect_of_an_experiment(tree, monkeypatch):
    kernel = V094(tree.root)
    monkeypatch.setattr(kernel, "open_socket", lambda family, **_: Answering(family, socket.SOCK_STREAM))
    monkeypatch.setattr(kernels, "here", lambda: kernel)
    monkeypatch.setattr(Answering, "manager", "default", raising=False)
    monkeypatch.setattr(Answering, "multipath", 1, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(OSError, match="path manager default"):
        sockets.connect("mptcp", listener.getsockname(), sockets.Source(), 5.0)


class Telling(MultipathSocket):
    """Its connections are of Multipath TCP with the hosts of ``over``, a socket without one tells of new ones where "" is one of these."""

    __slots__ = ()
    over = frozenset()

    def getsockopt(self, level, option, *_size):
        assert level == socket.IPPROTO_TCP
        try:
            host = self.getpeername()[0]
        except OSError:
            host = ""
        if option == 42:
            return int(host in self.over)
        return {43: b"default\0", 44: b"fullmesh\0"}[option] if host in self.over else b"\0"


def test_where_the_sysctls_are_hidden_a_socket_tells_the_scheduler_or_a_connection_with_itself(tree, monkeypatch):
    """That kernel may have plain TCP over loopback; 127.9.0.7 stands for an address of an interface."""
    for file in (tree.root / "proc/sys/net/mptcp").iterdir():
        file.unlink()
    tree.interface("wwan0", address="127.9.0.7")
    tree._take()
    monkeypatch.setattr(v094, "open_socket", lambda family, **_: Telling(family, socket.SOCK_STREAM))
    kernel = here(tree.root)
    for over in ("", "127.0.0.1", "127.9.0.7"):
        monkeypatch.setattr(Telling, "over", frozenset({over}))
        assert (kernel.scheduler(), kernel.schedulers()) == ("minsrtt", {"minsrtt": "default"}), over
    monkeypatch.setattr(Telling, "over", frozenset())
    assert (kernel.scheduler(), kernel.schedulers()) == (None, {})


def test_the_token_is_found_by_the_sockets_inode_and_a_connection_that_is_gone_is_no_traceback(tree, monkeypatch):
    Connection([ONE], monkeypatch)
    with MultipathSocket() as connection:
        inode = os.fstat(connection.fileno()).st_ino
        heading = (tree.root / "proc/thread-self/net/mptcp_net/mptcp").read_text()
        line = f"   0: 2D0B85BA 39F8CCC5  0 6601A8C0:E89F  2DE66882:0050  01 01 00000000:00000000 {inode}"
        tree.write("proc/thread-self/net/mptcp_net/mptcp", heading + line)
        assert Reader(connection, tree.root).read().mptcp.token == 0x2D0B85BA
    with pytest.raises(StatisticsError):
        Reader(connection, tree.root).read()


def test_plain_tcp_is_a_fallback_only_where_multipath_was_asked_for(tree, monkeypatch):
    Connection(None, monkeypatch)
    for kind, fallback in ((MultipathSocket, True), (socket.socket, False)):
        with socket.create_server(("127.0.0.1", 0)) as listener, kind(socket.AF_INET, socket.SOCK_STREAM) as connection:
            connection.connect(listener.getsockname())
            sample = Reader(connection, tree.root).read()
            assert (sample.fallback, sample.mptcp, [s.id for s in sample.subflows]) == (fallback, None, ["0"])


def second(root, linux, *, modules=True):
    """As the role mptcp leaves it."""
    (root / "etc").mkdir(parents=True, exist_ok=True)
    (root / "etc/tandem-kernel.json").write_text(f'{{"linux": "{linux}", "boot": "grub"}}')
    if modules:
        (root / "lib/modules" / linux).mkdir(parents=True)
    return root


def test_the_kernels_of_a_kit_and_what_a_substitute_means(tmp_path):
    paper = load("cordero-bandwidth")
    new = second(stock(tmp_path / "new"), "4.14.146.mptcp")
    (new / "proc/sys/kernel").mkdir()
    (new / "proc/sys/kernel/osrelease").write_text("6.1.0-56-amd64\n")
    assert kernel_lines(paper, kernels.installed(new)) == [
        "  Linux 6.1.0-56-amd64 (upstream, runs): no minsrtt, but stock",
        "  Linux 4.14.146.mptcp (v0.94, installed; tandem-kernel status): minsrtt",
        "  with --allow-substitutes here: stock in its place, and each result says so; minsrtt fills the path with the lowest "
        "round-trip time first, the stock scheduler the one with the fewest bytes queued for its rate: shares and reordering may differ "
        "from the papers'",
    ]
    old = second(Tree(tmp_path / "old", release="4.14.146.mptcp").root, "4.14.146.mptcp")
    assert kernel_lines(paper, kernels.installed(old)) == [
        "  Linux 4.14.146.mptcp (v0.94, runs): minsrtt",
        "  Linux the distribution's (upstream, installed; tandem-kernel status): no minsrtt, but stock",
    ]
    gone = second(stock(tmp_path / "gone"), "4.14.146.mptcp", modules=False)
    assert [one.runs for one in kernels.installed(gone)] == [True]
    assert kernel_lines(load("adarsh-survey"), kernels.installed(new)) == []


def test_each_of_the_papers_campaigns_runs_there_or_says_what_it_cannot_and_is_refused_on_the_stock_kernel(tmp_path):
    tree = Tree(tmp_path / "old", mptcp_scheduler="roundrobin")
    new = here(stock(tmp_path / "new"))
    ours = {"steering-ab", "congestion-ab"}  # for stock kernels
    for name in sorted({*campaigns.names()} - {"adarsh-survey"} - ours):  # that one has no Multipath TCP
        paper = load(name)
        controllers = " ".join(("cubic", "reno", *paper.requires.controllers))
        tree.write("proc/sys/net/ipv4/tcp_available_congestion_control", controllers)
        old = here(tree.root)
        known = set(old.controllers() or ())

        def there(wanted, known=known):
            return {one: one in known for one in wanted}

        assert paper.requires.scheduler == "minsrtt", name
        if name.startswith("chen-"):
            with pytest.raises(
                CampaignError, match=r"step small: subflows are ordered .* v0\.94 kernel refuses; hint: "
            ):
                settled(paper, allow=True, kernel=old, there=there, sends=lambda: "minsrtt")
        else:
            assert settled(paper, allow=False, kernel=old, there=there, sends=lambda: "minsrtt") == {}, name
        if name in ("adarsh-controlled", "chen-sizes", "cordero-bandwidth", "cordero-delay"):
            emulated = load(name, form="emulated")
            assert settled(emulated, allow=False, kernel=old, there=there, sends=lambda: "minsrtt") == {}, name
        assert settings(paper, {}, old) == {"net.mptcp.mptcp_scheduler": "default"}, name
        refusal = r"scheduler minsrtt \(this kernel has stock; minsrtt takes the v0\.94 kernel\)"
        with pytest.raises(CampaignError, match=refusal):
            settled(paper, allow=False, kernel=new, there=there)


def test_what_may_not_be_asked_over_a_path_is_not_known(monkeypatch, caplog):
    """By somebody without CAP_NET_RAW, which binding to an interface takes before Linux 5.7."""

    def refuse(*_words, **_wanted):
        raise sockets.UnsupportedError("a socket cannot be bound to wwan0")

    monkeypatch.setattr(request, "read_common", lambda _parameters: None)
    monkeypatch.setattr(request, "Control", lambda _common: SimpleNamespace(open=refuse))
    config = SimpleNamespace(paths=[], server=SimpleNamespace(parameter={}))
    assert (request.scheduler_there(config), request.controllers_there(config, ["lia"])) == (None, {"lia": None})
    assert caplog.text.count("is not known: a socket cannot be bound to wwan0") == 2


def test_what_that_kernel_cannot_do_is_refused(tree, monkeypatch):
    paper = load("cordero-bandwidth")
    asked = replace(paper, requires=replace(paper.requires, scheduler="blest", controllers=()))
    with pytest.raises(CampaignError, match=r"requires scheduler blest \(this kernel has minsrtt\); hint: "):
        settled(asked, allow=False, kernel=V094(tree.root), there=dict.fromkeys)
    tree.module("mptcp_blest")
    assert settled(asked, allow=False, kernel=V094(tree.root), there=dict.fromkeys) == {}
    monkeypatch.setattr(sysctls, "ROOT", tree.root / "proc/sys")
    monkeypatch.setattr(kernels, "here", lambda: V094(tree.root))
    with pytest.raises(sockets.UnsupportedError, match=r"no path manager but its own; hint: .* Linux 5\.19"):
        sockets.make("mptcp", sockets.Source(), sockets.Options(by_orders=True))


# --- sysctls: names are kept to the network's, refusals are recorded


def test_other_names_are_refused_and_what_the_kernel_does_not_have_is_recorded(tmp_path, monkeypatch):
    (tmp_path / "net/ipv4").mkdir(parents=True)
    (tmp_path / "net/ipv4/tcp_rmem").write_text("4096\t131072\t6291456\n")
    monkeypatch.setattr(sysctls, "ROOT", tmp_path)
    rows = ["kernel.panic", "net", "net.ipv4/../../kernel.panic", "net..x", "net.ipv4.tcp_rmem\n"]
    assert [name for name in rows if "no network sysctl" not in said(ValueError, sysctls.apply, {name: 1})] == []
    setting = sysctls.apply({"net.mptcp.blackhole_timeout": 0})["net.mptcp.blackhole_timeout"]
    assert (setting.before, setting.now, setting.error) == (None, None, "No such file or directory")
    assert sysctls.restore({"x": setting}) == {}
    assert sysctls.read(["net.mptcp.blackhole_timeout"]) == {"net.mptcp.blackhole_timeout": None}


PATHS = (Path("a", "eth1"), Path("b", "eth2"))


class KernelSysctls:
    """Sysctls of a kernel; ``refuses``: none of them may be written."""

    def __init__(self, values: dict[str, str], *, refuses: bool = False) -> None:
        self.values, self.refuses = values, refuses

    def read(self, names):
        return {name: self.values.get(name) for name in names}

    def apply(self, wanted):
        made = {}
        for name, value in wanted.items():
            before = self.values[name]
            if not self.refuses:
                self.values[name] = value
            error = "Permission denied" if self.refuses else None
            made[name] = sysctls.Setting(name, value, before, self.values[name], error)
        return made


@pytest.fixture
def chosen(monkeypatch):
    monkeypatch.setattr(watch, "PmCommands", lambda: type("Silent", (), {"close": lambda _: None})())

    def choose(kernel: KernelSysctls, addresses: dict[str, str]) -> NamespaceOrders:
        monkeypatch.setattr(sysctls, "read", kernel.read)
        monkeypatch.setattr(sysctls, "apply", kernel.apply)
        monkeypatch.setattr(Paths, "addresses", addresses)
        made = NamespaceOrders(Paths(PATHS))
        made.choose()
        return made

    return choose


MIXED, ONE_FAMILY = {"a": "192.0.2.1", "b": "2001:db8::1"}, {"a": "192.0.2.1", "b": "192.0.2.9"}


def test_ours_while_families_differ_and_the_kernels_again_at_the_end(chosen):
    names = (("net.mptcp.path_manager", "kernel", "userspace"), ("net.mptcp.pm_type", "0", "1"))
    for name, theirs, mine in names:
        kernel = KernelSysctls({name: theirs})
        made = chosen(kernel, MIXED)
        assert (made.ours, kernel.values) == (True, {name: mine})
        made.close()
        assert kernel.values == {name: theirs}
        left = KernelSysctls({name: mine})
        assert chosen(left, ONE_FAMILY).ours is False
        assert left.values == {name: theirs}


def test_a_refusal_is_said_once_and_a_kernel_before_5_19_only_where_it_matters(chosen, caplog):
    made = chosen(KernelSysctls({"net.mptcp.pm_type": "0"}, refuses=True), MIXED)
    made.choose()
    assert (made.ours, made.why_not) == (False, "net.mptcp.pm_type: Permission denied")
    assert caplog.text.count("will not come back") == 1
    caplog.clear()
    assert chosen(KernelSysctls({}), ONE_FAMILY).why_not is None
    assert "no path manager but its own" in (chosen(KernelSysctls({}), MIXED).why_not or "")
    assert caplog.text.count("will not come back") == 1


def test_a_controller_that_was_noted_is_bpf_with_its_object_and_a_note_that_is_none_claims_nothing(tmp_path):
    note = tmp_path / "loaded.json"
    assert described("lia", note) == {"name": "lia", "kind": "kernel", "object_sha256": None}
    note.write_text(json.dumps({"controllers": ["lia"], "object_sha256": "ab"}))
    assert described("lia", note) == {"name": "lia", "kind": "bpf", "object_sha256": "ab"}
    assert described("cubic", note) == {"name": "cubic", "kind": "kernel", "object_sha256": None}
    assert described(None, note) is None
    for text in ("", "{", "[]", "{}", '{"controllers": 1, "object_sha256": "ab"}', '{"controllers": ["lia"]}'):
        note.write_text(text)
        assert described("lia", note) == {"name": "lia", "kind": "kernel", "object_sha256": None}
