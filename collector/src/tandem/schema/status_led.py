"""What the status LED of a kit says: the states, how each looks, and what whoever carries the kit is to do.

The one source of it: the collector plays these patterns, the e-paper prints these sentences, the commuter's guide and the
command `tandem indicator list` are made out of them.

Gravest first. Of all states that hold at a time the first in `STATES` is shown, with two things to know about the order: what a
commuter has to leave alone for a moment (`stopping`) comes before what they are to do, and what they can fix themselves
(`charge`) before what they have to call for, since a weak supply is often why a modem is gone.

How a state looks:
- Every state of a running collector blinks. Steady light, in whichever colour, means that nothing runs: neither a collector that
  is gone nor one that has frozen looks well.
- The patterns alone tell the states apart, for who cannot tell the colours and for kits with a lamp of one colour.
- No more than three flashes in any second (WCAG 2.3.1), none shorter than 50 ms, no period longer than 4 s.
- Well is the most discreet: one short flash every four seconds.
"""

from dataclasses import dataclass

Pattern = tuple[tuple[int, int], ...]
"""(lit, dark) in ms, one period; a steady state has (lit, 0) or (0, dark) alone."""

CHANNELS = ("red", "green", "blue")  # one kernel LED each: tandem:red:status and so on
COLOURS: dict[str, frozenset[str]] = {
    "red": frozenset({"red"}),
    "green": frozenset({"green"}),
    "blue": frozenset({"blue"}),
    "yellow": frozenset({"red", "green"}),
    "cyan": frozenset({"green", "blue"}),
    "magenta": frozenset({"red", "blue"}),
    "white": frozenset({"red", "green", "blue"}),
    "dark": frozenset(),
}


@dataclass(frozen=True, slots=True)
class LedState:
    """One state: its name (words with hyphens), one of `COLOURS`, one period of light and dark, and its two sentences."""

    name: str
    colour: str
    pattern: Pattern
    means: str  # to a commuter
    do: str  # what the commuter does

    @property
    def title(self) -> str:
        """The name as one writes it: "No network"."""
        return self.name.replace("-", " ").capitalize()

    @property
    def period_ms(self) -> int:
        return sum(lit + dark for lit, dark in self.pattern)

    @property
    def blinks(self) -> bool:
        return any(lit for lit, _ in self.pattern) and any(dark for _, dark in self.pattern)


NOT_RUNNING = LedState(
    "not-running",
    "red",
    ((1000, 0),),
    "The kit has power but does not measure.",
    "Wait two minutes after switching on; if the light is still steady, switch off and on once, and call if that does not help.",
)
STOPPING = LedState(
    "stopping",
    "white",
    ((1400, 400),),
    "The kit is ending its work, to be switched off or updated.",
    "Do not unplug it: wait until the light is dark or changes.",
)
CHARGE = LedState(
    "charge",
    "yellow",
    ((150, 250), (150, 1450)),
    "The kit gets too little power.",
    "Charge the battery now and push the power cable in firmly; call if it goes on with a full battery.",
)
CALL = LedState(
    "call",
    "red",
    ((200, 300),),
    "Something is wrong that you cannot mend, such as a modem that is gone or a full memory card.",
    "Leave the kit switched on and call.",
)
NO_NETWORK = LedState(
    "no-network",
    "magenta",
    ((150, 250), (150, 250), (150, 1850)),
    "No network has been within reach for a long time.",
    "Nothing to do while underground or abroad; call if it goes on for an hour where your own phone has reception.",
)
DATA_WAITING = LedState(
    "data-waiting",
    "cyan",
    ((800, 250), (150, 1800)),
    "The kit measures, but its data has not reached the server for a long time.",
    "Leave it switched on where your own phone has good reception; call if it goes on for a day.",
)
STARTING = LedState(
    "starting", "blue", ((800, 800),), "The kit is starting.", "Wait a minute or two and do not unplug it."
)
MEASURING = LedState(
    "measuring", "green", ((80, 1120),), "All is well, and a measurement is going on.", "Nothing to do."
)
WELL = LedState(
    "well",
    "green",
    ((60, 3940),),
    "All is well: the kit watches the networks and waits for its next measurement.",
    "Nothing to do.",
)
OFF = LedState(
    "off",
    "dark",
    ((0, 1000),),
    "The kit is switched off, or has no power.",
    "You may unplug it; if it should be on, charge the battery and switch it on.",
)

STATES: tuple[LedState, ...] = (
    NOT_RUNNING,
    STOPPING,
    CHARGE,
    CALL,
    NO_NETWORK,
    DATA_WAITING,
    STARTING,
    MEASURING,
    WELL,
    OFF,
)
BY_NAME: dict[str, LedState] = {state.name: state for state in STATES}
