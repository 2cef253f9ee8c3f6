"""A collector's stand-in, whose campaigns are driven by the second."""

from pathlib import Path

from road import step

from tandem.app.campaign.driver import Campaigns
from tandem.app.campaign.progress import Begun
from tandem.app.campaign.scheduler import Moment, Outcome, ProbeState
from tandem.schema.campaign_reader import parse


class Kit:
    """A collector's stand-in. Runs end when the test says so."""

    def __init__(self, folder: Path, boot: str = "boot-1", t: float = 0.0):
        self.folder, self.boot, self.t = folder, boot, t
        self.asked, self.ended, self.busy, self.refusal, self.used = [], {}, False, None, {"wlan": 0, "lte": 0}
        self.campaigns = Campaigns(folder, self, self.now, self.probe, lambda: dict(self.used))

    def now(self):
        return Moment(self.boot, self.t, 1.8e9 + self.t)

    def probe(self, paths):
        return ProbeState(paths_up=frozenset(paths), speed_class="still")

    def begin(self, experiment, request, campaign):
        if self.refusal:
            raise ValueError(self.refusal)
        if self.busy:
            return None
        self.asked.append((experiment, dict(request), dict(campaign)))
        return f"pair-{len(self.asked)}"

    def done(self, begun):
        return self.ended.get(begun)

    def end(self, begun):
        self.ended.setdefault(begun, Outcome(False, "stopped", ("run-1",)))

    def finish(self, ok=True):
        self.ended[f"pair-{len(self.asked)}"] = Outcome(ok, None if ok else "timeout", ("run-1",))

    def ticks(self, count=1):
        for _ in range(count):
            self.t += 1
            self.campaigns.tick()

    def to_the_end(self, most=200):
        while self.campaigns.under_way and most:
            self.ticks()
            self.finish()
            most -= 1
        assert most


SIX_RUNS = step(repetitions=3, more="[step.parameters]\nbytes = [1, 2]")


def begun(kit, steps=SIX_RUNS, top=""):
    text = f'format = "tandem-campaign-file/1"\nname = "x"\ntitle = "t"\nroles = ["a", "b"]\n{top}\n{steps}'
    return Begun(text, parse(text, "c.toml"), {"a": "wlan", "b": "lte"}, None, {}, kit.now(), {})
