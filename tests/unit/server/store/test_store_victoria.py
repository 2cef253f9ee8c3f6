"""VictoriaMetrics, the distribution's own: what counts as stored is in its files and can be read back; what it would drop is named."""

import json
import time
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.serve_on_loopback import Server, await_ready, end, lay_out, start
from support.victoria_metrics import VictoriaMetrics
from tandem.schema.line_protocol import parse
from tandem_server.store import Mirrored, Rejected, StoreDown
from tandem_server.store.victoria import stored

FIT = ("-dedup.minScrapeInterval=1ms", "-retentionPeriod=100y")
NOW = time.time_ns() // 10**9 * 10**9


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    with VictoriaMetrics(tmp_path_factory.mktemp("victoria"), *FIT) as running:
        yield running


@pytest.fixture
def store(database):
    client = database.client()
    yield client
    client.close()


def exported(store, name, **labels):
    """Values by labels (without name and db) and time in ms."""
    wanted = "".join(f',{k}="{v}"' for k, v in labels.items())
    ask = urlencode({"match[]": f'{{__name__="{name}"{wanted}}}', "start": "1577836800", "end": "4102444800"})
    status, _, body = store._link.request("GET", "/api/v1/export?" + ask)
    assert status == 200
    out = {}
    for series in map(json.loads, body.splitlines()):
        tags = frozenset((k, v) for k, v in series["metric"].items() if k not in ("__name__", "db"))
        for at, value in zip(series["timestamps"], series["values"], strict=True):
            assert (tags, at) not in out  # one value a time
            out[tags, at] = value
    return out


def line(seq, boot, at_ns, more=""):
    return f"radio,boot={boot},path=a,probe=p monotonic_ns=5i,rsrp_dbm=-90.25{more},seq={seq}i {at_ns}"


def test_what_is_written_can_be_read_at_once_and_twice_is_once(store):
    lines = [line(i, "one", NOW + i * 10**6) for i in range(1, 501)]
    for _ in range(2):
        assert store.write(lines) == []
    found = exported(store, "radio_seq", boot="one")
    assert sorted(found.values()) == list(range(1, 501))
    assert set(exported(store, "radio_rsrp_dbm", boot="one").values()) == {-90.25}


def test_truth_values_and_texts_and_texts_left_out_when_that_was_decided(database, store):
    texts = line(1, "kinds", NOW, ',stale=true,state="no answer, \\"x\\"",failure="CME=10\\\\"')
    assert store.write([texts]) == []
    assert list(exported(store, "radio_stale", boot="kinds").values()) == [1]
    ((tags, _),) = exported(store, "radio_texts", boot="kinds")
    assert (dict(tags)["state"], dict(tags)["failure"]) == ('no answer, "x"', "CME=10")
    assert exported(store, "radio_state", boot="kinds") == {}
    with_none = database.client(texts="dropped")
    assert with_none.write([line(1, "textless", NOW, ',state="connected"')]) == []
    assert exported(with_none, "radio_texts", boot="textless") == {}
    assert list(exported(with_none, "radio_seq", boot="textless").values()) == [1]
    with_none.close()


def test_what_it_drops_without_a_word_is_named_and_the_others_are_in(tmp_path):
    """Older than its retention: told 204 by the database, and only counted by it."""
    with VictoriaMetrics(tmp_path, "-dedup.minScrapeInterval=1ms", "-retentionPeriod=30d") as database:
        store = database.client(retention_days=30)
        old = NOW - 90 * 86_400 * 10**9
        rejected = store.write([line(1, "b", NOW), line(2, "b", old), line(3, "b", NOW + 10**6)])
        assert [one.index for one in rejected] == [1]
        assert sorted(exported(store, "radio_seq", boot="b").values()) == [1, 3]
        assert store.write([line(4, "b", NOW + 2 * 10**6)]) == []
        store.close()


def test_two_records_of_one_series_in_one_millisecond_are_not_silently_one(store):
    lines = [line(1, "same", NOW + 1), line(2, "same", NOW + 2), line(3, "same", NOW + 10**6), line(1, "same", NOW + 1)]
    rejected = store.write(lines)
    assert [one.index for one in rejected] == [1]
    assert "same millisecond" in rejected[0].reason
    assert sorted(exported(store, "radio_seq", boot="same").values()) == [1, 3]


def test_what_was_acknowledged_survives_its_being_killed(tmp_path):
    database = VictoriaMetrics(tmp_path, *FIT).start()
    client = database.client()
    try:
        for part in range(3):
            assert client.write([line(part * 20 + i, "kill", NOW + (part * 20 + i) * 10**6) for i in range(20)]) == []
            database.kill()
            with pytest.raises(StoreDown):
                client.write([line(1000, "kill", NOW)])
            database.start()
        assert sorted(exported(client, "radio_seq", boot="kill").values()) == list(range(60))
    finally:
        client.close()
        database.kill()


@pytest.mark.parametrize(
    ("flags", "retention_days", "mend"),
    [
        (["-dedup.minScrapeInterval=1s", "-retentionPeriod=100y"], None, "-dedup.minScrapeInterval=1ms"),
        (["-dedup.minScrapeInterval=1ms"], None, "-retentionPeriod=36500d"),
        (["-dedup.minScrapeInterval=1ms", "-retentionPeriod=20d"], 30, "-retentionPeriod=30d"),
    ],
)
def test_one_that_would_keep_twins_or_forget_too_soon_is_given_nothing(tmp_path, flags, retention_days, mend):
    with VictoriaMetrics(tmp_path, *flags) as database:
        client = database.client(retention_days=retention_days)
        for ask in (client.ping, lambda: client.write([line(1, "unfit", NOW)])):
            with pytest.raises(StoreDown, match=mend):
                ask()
        assert exported(client, "radio_seq") == {}
        client.close()


@given(
    st.dictionaries(
        st.sampled_from(["path", "operator"]), st.text(st.characters(exclude_characters="\r\n"), min_size=1, max_size=6)
    ),
    st.dictionaries(st.sampled_from(["state", "failure"]), st.text(max_size=8)),
)
def test_any_line_becomes_lines_of_numbers(tags, texts):
    tags = {k: v.rstrip("\\") or "x" for k, v in tags.items()}
    head = "".join(f",{k}=" + v.replace(",", "\\,").replace("=", "\\=").replace(" ", "\\ ") for k, v in tags.items())
    told = "".join(
        f',{k}="' + v.replace("\r", " ").replace("\n", " ").replace("\\", "\\\\").replace('"', '\\"') + '"'
        for k, v in texts.items()
    )
    form = stored(f"radio,boot=b{head} seq=1i{told} {NOW}", "tandem", "labels")
    first = parse(form.lines[0])
    assert first.fields == {"seq": 1.0}
    assert first.utc_ns == form.utc_ms == NOW // 10**6
    for one in form.lines:
        assert all(not isinstance(value, str) for value in parse(one).fields.values())


def test_one_probe_is_erased_and_the_other_stays(store):
    lines = [f"radio,boot=e,path=a,probe={probe} rsrp_dbm=-90,seq=1i {NOW}" for probe in ("erased", "kept-one")]
    assert store.write(lines) == []
    assert store.measurements_of("erased") == 2
    store.erase("erased")
    assert (store.measurements_of("erased"), store.measurements_of("kept-one")) == (0, 2)


class Database:
    def __init__(self):
        self.lines = []

    def write(self, lines, **_):
        self.lines += [line for line in lines if "seq=13i" not in line]
        return [Rejected(i, "no") for i, line in enumerate(lines) if "seq=13i" in line]


def test_the_mirror_has_what_the_database_accepted(database, caplog):
    accepting, mirror = Database(), database.client()
    both = Mirrored(accepting, mirror)
    lines = [line(seq, "mirrored", NOW + seq * 10**6) for seq in (12, 13, 14)]
    textual = f'radio,boot=mirrored,path=a,probe=p state="only text" {NOW}'
    assert [one.index for one in both.write([*lines, textual])] == [1]
    assert sorted(exported(mirror, "radio_seq", boot="mirrored").values()) == [12, 14]
    assert len(accepting.lines) == 3
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith("not in the mirror: radio,boot=mirrored")
    mirror.close()


# --- the whole gateway with it as its mirror: while it is away nothing is accepted


def test_accepted_records_are_in_it_and_while_it_is_away_none_is_accepted(tmp_path):
    database = VictoriaMetrics(tmp_path, *FIT).start()
    ports = lay_out(tmp_path)
    with (tmp_path / "server.toml").open("a") as file:
        file.write(f'\n[mirror]\nurl = "http://127.0.0.1:{database.port}"\ntexts = "labels"\n')
    influx = start(tmp_path, "database")
    await_ready(influx, "database")
    gateway, client = start(tmp_path, "gateway"), database.client()
    try:
        await_ready(gateway, "gateway")
        server = Server(tmp_path, *ports, gateway, (tmp_path / "token").read_text().strip())
        now = time.time_ns() // 10**6 * 10**6
        lines = [
            f"health,boot=b,probe=liar mobile=true,seq={i}i,monotonic_ns={i}i {now + i * 10**6}" for i in range(1, 51)
        ]
        lines[9] = "nonsense"
        for _ in range(2):
            status, _, answer = server.gateway("POST", "/v1/records", "\n".join(lines))
            assert (status, answer["accepted"], [one["line"] for one in answer["rejected"]]) == (200, 49, [9])
        assert sorted(exported(client, "health_seq", probe="probe-1").values()) == [i for i in range(1, 51) if i != 10]
        database.kill()
        assert server.gateway("POST", "/v1/records", lines[0])[0] == 503
        database.start()
        assert server.gateway("POST", "/v1/records", lines[0])[0] == 200
    finally:
        client.close()
        assert end(gateway) == 0
        assert end(influx) == 0
        database.kill()
