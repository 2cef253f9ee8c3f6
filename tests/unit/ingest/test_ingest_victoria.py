"""The whole gateway in front of VictoriaMetrics: accepted means that it can be exported; while it is away nothing is accepted."""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))

from serve_on_loopback import Server, await_ready, command, end, lay_out, start
from victoria_metrics import VictoriaMetrics

FIT = ("-dedup.minScrapeInterval=1ms", "-retentionPeriod=100y")


def configured(folder, text):
    """A server.toml with this ``[store]``, and the ports."""
    ports = lay_out(folder)
    file = folder / "server.toml"
    before, _, after = file.read_text().partition("[store]\n")
    file.write_text(f"{before}[store]\n{text}\n[limits]{after.partition('[limits]')[2]}")
    return ports


def test_records_arrive_in_it(tmp_path):
    database = VictoriaMetrics(tmp_path, *FIT).start()
    store = f'kind = "victoriametrics"\nurl = "http://127.0.0.1:{database.port}"\ntexts = "labels"'
    ports = configured(tmp_path, store)
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
        _, _, body = client._link.request(
            "GET", "/api/v1/export?match%5B%5D=%7B__name__%3D%22health_seq%22%7D&start=1577836800&end=4102444800"
        )
        (series,) = map(json.loads, body.splitlines())
        assert series["metric"]["probe"] == "probe-1"
        assert sorted(series["values"]) == [i for i in range(1, 51) if i != 10]
        database.kill()
        assert server.gateway("POST", "/v1/records", lines[0])[0] == 503
        database.start()
        assert server.gateway("POST", "/v1/records", lines[0])[0] == 200
    finally:
        client.close()
        assert end(gateway) == 0
        database.kill()


HALF_TOLD = [
    ('kind = "victoriametrics"\nurl = "http://127.0.0.1:1"', "needs texts"),
    ('kind = "victoriametrics"\nurl = "http://127.0.0.1:1"\ntexts = "kept"', "one of labels, dropped"),
    ('kind = "victoriametrics"\nurl = "http://127.0.0.1:1"\ntexts = "labels"\nuser = "u"', "belong together"),
    ('kind = "influxdb2"\nurl = "http://127.0.0.1:1"\norg = "lab"', "needs token_file"),
    ('kind = "influxdb2"\nurl = "127.0.0.1:1"\norg = "lab"\ntoken_file = "t"', "hint: http://HOST:PORT"),
    ('kind = "running"\nurl = "http://127.0.0.1:1"\nuser = "u"', "needs password_file"),
    (
        'kind = "running"\nurl = "http://127.0.0.1:1"\nuser = "u"\npassword_file = "p"\norg = "lab"',
        'org is not for kind "running"',
    ),
    ('texts = "labels"', 'texts is not for kind "private"'),
]


def test_a_store_that_is_not_wholly_told_stops_the_start(tmp_path):
    file = tmp_path / "server.toml"
    for store, said in HALF_TOLD:
        file.write_text(f"[store]\n{store}\n")
        status, out, err = command("serve", "gateway", "--config", file)
        assert (status, out, err.count("\n"), said in err) == (2, "", 1, True), (store, err)
        assert err.startswith(f"tandem-server: {file}:")
