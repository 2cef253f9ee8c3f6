"""The whole gateway with VictoriaMetrics as its mirror: accepted means that it can be exported there; while it is away nothing is."""

import json
import time

from support.serve_on_loopback import Server, await_ready, command, end, lay_out, start
from support.victoria_metrics import VictoriaMetrics

FIT = ("-dedup.minScrapeInterval=1ms", "-retentionPeriod=100y")


def test_records_arrive_in_it(tmp_path):
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
        assert end(influx) == 0
        database.kill()


URL = 'url = "http://127.0.0.1:1"\n'
HALF_TOLD = [
    (f"[mirror]\n{URL}", "needs texts"),
    ('[mirror]\ntexts = "labels"', "needs url"),
    (f'[mirror]\n{URL}texts = "kept"', "one of labels, dropped"),
    (f'[mirror]\n{URL}texts = "labels"\nuser = "u"', "belong together"),
    ('[mirror]\nurl = "127.0.0.1:1"\ntexts = "labels"', "hint: http://HOST:PORT"),
    (f'[store]\nkind = "influxdb2"\n{URL}', "one of private, running"),
    (f'[store]\nkind = "running"\n{URL}user = "u"', "needs password_file"),
    (f'[store]\nkind = "running"\n{URL}user = "u"\npassword_file = "p"\norg = "lab"', "unknown key 'org'"),
    (f"[store]\n{URL}", 'url is not for kind "private"'),
]


def test_a_store_that_is_not_wholly_told_stops_the_start(tmp_path):
    file = tmp_path / "server.toml"
    for store, said in HALF_TOLD:
        file.write_text(f"{store}\n")
        status, out, err = command("serve", "gateway", "--config", file)
        assert (status, out, err.count("\n"), said in err) == (2, "", 1, True), (store, err)
        assert err.startswith(f"tandem-server: {file}:")
