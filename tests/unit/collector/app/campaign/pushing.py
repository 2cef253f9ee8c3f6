"""A server's end of the queue in memory, by the specification, with a network that loses what the test says."""

import json
from dataclasses import replace

from driven import Kit
from road import step

from tandem.app.campaign.progress import Begun, Origin
from tandem.app.campaign.queue import ProbeQueue, QueueWatch
from tandem.export.gateway import Answer, Later
from tandem.schema.campaign import CampaignError
from tandem.schema.campaign_queue import FORMAT, SETTLED, Pushed, queue_to_dict, read_report
from tandem.schema.campaign_reader import parse

STEPS = step(repetitions=2, more="[step.parameters]\nbytes = [1, 2]")


def text_of(name, steps=STEPS):
    return f'format = "tandem-campaign-file/1"\nname = "{name}"\ntitle = "t"\nroles = ["a", "b"]\n{steps}'


class PushingServer:
    """``network``: for each request, whether it arrives and whether its answer does. ``answer``: instead of the server's own."""

    def __init__(self):
        self.rows, self.texts, self.history = {}, {}, []
        self.network = lambda _method, _url: (True, True)
        self.answer = lambda _method, _url: None
        self.online = True

    def push(self, name="pushed", priority=50, steps=STEPS, label=None):
        push = f"push-{len(self.rows):012x}"
        one = Pushed(push, name, f"{name}.toml", "paper", label, {}, False, priority, len(self.rows))
        self.rows[push] = {"pushed": one, "state": "queued", "reason": None, "withdraw": False}
        self.texts[push] = text_of(name, steps)
        return push

    def withdraw(self, push):
        row = self.rows[push]
        row["withdraw"] = True
        if row["state"] == "queued":
            row["state"] = "withdrawn"

    def states(self):
        return [row["state"] for row in self.rows.values()]

    def ask(self, method, url, content, _headers):
        arrives, answered = self.network(method, url)
        if not self.online or not arrives:
            raise Later("no path works", 1.0)
        status, told = self.answer(method, url) or self._answer(method, url.split("/")[3:], content)
        if not answered:
            raise Later("timeout", 1.0)
        return Answer(status, told, None)

    def _answer(self, method, rest, content):
        if method == "GET" and not rest:
            waiting = [row for row in self.rows.values() if row["state"] not in SETTLED]
            return 200, queue_to_dict([replace(row["pushed"], withdraw=row["withdraw"]) for row in waiting])
        row = self.rows.get(rest[0])
        if row is None:
            return 404, {"error": "no such campaign"}
        if method == "GET":
            return 200, {"format": FORMAT, "text": self.texts[rest[0]]}
        report = read_report(json.loads(content))
        self.history.append((rest[0], report.state))
        if row["state"] not in SETTLED:
            row["state"], row["reason"] = report.state, report.reason
        return 200, {"ok": True, "state": row["state"], "withdraw": row["withdraw"]}


class PushedTo:
    """A probe that is asked by the second: a life of it ends without a word when another is made of the same folder."""

    def __init__(self, server, folder, boot="boot-1", t=0.0):
        self.server, self.refusal = server, None
        self.kit = Kit(folder, boot, t)
        self.own = ProbeQueue(folder)
        self.ask = server.ask
        self.watch = QueueWatch(self.own, self.kit.campaigns, self, self.admit, 0.0)
        self.kit.campaigns.resume()

    def admit(self, one, text):
        if self.refusal:
            raise CampaignError(self.refusal)
        made = parse(text, one.file)
        return Begun(
            text, made, {"a": "wlan", "b": "lte"}, one.label, {}, self.kit.now(), {}, Origin(one.id, one.priority)
        )

    def abort(self):
        pass

    def close(self):
        pass

    def second(self):
        self.watch.turn()
        self.kit.ticks()

    def seconds(self, count, *, finish=True):
        for _ in range(count):
            self.second()
            if finish:
                self.kit.finish()

    def asked(self):
        """By push and number, how often each run was asked for."""
        return [(c.get("push"), c["number"]) for _, _, c in self.kit.asked]
