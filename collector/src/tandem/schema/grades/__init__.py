"""How what is recorded is shown: titles, usual ranges, thresholds, colours by meaning, words for states. Standard library only.

Terminal, boards and alarms take all of it from here, so that one quantity is called, coloured and judged the same everywhere. What has
no grade here has none anywhere. Everything is asked for by measurement and field, as the schema calls them:

    scale("radio", "rsrp_dbm")        # Scale(good=-90, fair=-105, source=…), or None where nothing is good or poor
    scale("radio", "rsrp_dbm").steps  # ((None, "poor"), (-105, "fair"), (-90, "good")): as Grafana writes thresholds
    tone_of("radio", "rsrp_dbm", -97) # "fair"
    COLOURS["fair"].web, .terminal    # "#F2CC0C", "yellow"
    usual("radio", "rsrp_dbm")        # Range(-125, -70)
    title("radio", "rsrp_dbm")        # "RSRP"
    meanings("radio", "state")        # {"connected": Meaning("connected", "good"), …}, or {} where a field has no such words

To add a field's grade, range or words: one line in ``limits.py``, ``ranges.py`` or ``states.py``; a new event kind needs its line in
``events.py`` (a test holds it).
"""

from __future__ import annotations

from tandem.schema.grades.events import EVENTS, event_meaning
from tandem.schema.grades.limits import SCALES, SHARES, disk_tone, scale, tone_of
from tandem.schema.grades.ranges import Range, usual
from tandem.schema.grades.scale import Scale
from tandem.schema.grades.states import STATES, meaning, meanings
from tandem.schema.grades.titles import title, title_of
from tandem.schema.grades.tones import COLOURS, PATH_COLOURS, TONES, Colour, Meaning, Tone, path_colours

__all__ = [
    "COLOURS",
    "EVENTS",
    "PATH_COLOURS",
    "SCALES",
    "SHARES",
    "STATES",
    "TONES",
    "Colour",
    "Meaning",
    "Range",
    "Scale",
    "Tone",
    "disk_tone",
    "event_meaning",
    "meaning",
    "meanings",
    "path_colours",
    "scale",
    "title",
    "title_of",
    "tone_of",
    "usual",
]
