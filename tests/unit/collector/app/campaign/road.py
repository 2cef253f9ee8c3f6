"""A campaign played on a made-up road: time passes, things happen, runs take as long as they take."""

from tandem.app.campaign.scheduler import Cost, Happening, Moment, Outcome, ProbeState, Scheduler, Start
from tandem.schema.campaign import order
from tandem.schema.campaign_reader import parse

BEGUN_UTC_S = 1_790_000_000.0 - 1_790_000_000.0 % 86400  # a midnight


def campaign(steps: str, top: str = "", roles: str = '["a", "b"]'):
    return parse(
        f'format = "tandem-campaign-file/1"\nname = "x"\ntitle = "t"\nroles = {roles}\n{top}\n{steps}', "c.toml"
    )


def step(name: str = "s", repetitions: int = 3, more: str = "") -> str:
    return f'[[step]]\nname = "{name}"\nexperiment = "download"\nrepetitions = {repetitions}\n{more}\n'


class Road:
    """Steps of one second. ``takes_s``: how long a run takes; ``bytes``: of each role, as estimated and as measured."""

    def __init__(self, made, *, takes_s=5.0, bytes_=1000, measured=None, utc=True, ok=lambda _entry: True, entries=()):
        self.made, self.takes_s, self.bytes, self.measured, self.utc, self.ok = made, takes_s, bytes_, measured, utc, ok
        self.boot, self.t = "boot-1", 0.0
        self.probe = ProbeState(paths_up=frozenset(made.roles), speed_class="still")
        self.entries = list(entries)
        self.log = []
        self.begun = self.now()
        self.restart()

    def restart(self):
        sequences = {s.name: order(self.made, s) for s in self.made.steps}
        self.scheduler = Scheduler(self.made, sequences, self.entries, self.begun, lambda _item: self.cost())
        self.running = None

    def cost(self):
        return Cost(self.takes_s, dict.fromkeys(self.made.roles, self.bytes))

    def now(self):
        return Moment(self.boot, self.t, BEGUN_UTC_S + self.t if self.utc else None)

    def happens(self, kind):
        self.scheduler.note(Happening(kind, self.now()))

    def second(self):
        """One second; what the scheduler said."""
        self.t += 1.0
        if self.running is not None and self.t >= self.running[1]:
            entry = self.running[0]
            used = None if self.measured is None else dict.fromkeys(self.made.roles, self.measured)
            good = self.ok(entry)
            self.scheduler.ended(entry, Outcome(good, None if good else "down", ("run",), used), self.now())
            self.running = None
        said = self.scheduler.decide(self.now(), self.probe)
        if isinstance(said, Start):
            entry = self.scheduler.started(said, self.now())
            self.entries.append(entry)
            self.log.append((self.t, said))
            self.running = (entry, self.t + self.takes_s)
        return said

    def seconds(self, count):
        return [self.second() for _ in range(count)]

    @property
    def starts(self):
        return [t for t, _ in self.log]
