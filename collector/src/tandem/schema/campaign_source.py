"""A campaign's TOML as it was written: its lines, how a mistake is told, and a form laid over the file. Pure."""

from __future__ import annotations

import copy
import difflib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tandem.schema.campaign import PAPER, CampaignError
from tandem.schema.campaign_keys import FORM, FORM_TABLES, STEP, STEP_TABLES
from tandem.schema.toml_keys import Key
from tandem.schema.toml_lines import Place, line_of, places

_STEM_ENDS = ("_bit_per_s", "_percent", "_bytes", "_deg", "_ms", "_s", "_m")


class Source:
    """A file's content. ``moved``: where a place of the form was written."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        try:
            self.content: dict[str, Any] = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # ValueError: no TOML, or a number of thousands of digits
            raise CampaignError(_toml_error(file, text, str(error))) from error
        self.lines = places(text)
        self.moved: dict[Place, Place] = {}
        self._sized(self.content, ())

    def _sized(self, value: object, place: Place) -> None:
        """Whole numbers of TOML have 64 bits; tomllib reads longer ones, which nothing here could write down."""
        if isinstance(value, dict):
            for name, inner in value.items():
                self._sized(inner, (*place, name))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                self._sized(inner, (*place, index))
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise self.fail(place, "a whole number of more than 64 bits", "a smaller one")

    def fail(self, place: Place, what: str, hint: str) -> CampaignError:
        """The mistake at ``place``."""
        return CampaignError(f"{self.file}:{self.line(place)}: {what}; hint: {hint}")

    def line(self, place: Place) -> int:
        """Where it was written, 1 when that is not known."""
        rest: Place = ()
        origin = place
        while origin and origin not in self.moved:
            origin, rest = origin[:-1], (origin[-1], *rest)
        written = (*self.moved[origin], *rest) if origin else place
        return line_of(self.lines, written) or 1

    def table(self, value: object, place: Place) -> dict[str, Any]:
        """``value`` as a table."""
        if not isinstance(value, dict):
            name = ".".join(str(p) for p in place)
            raise self.fail(place, f"{name!r} is no table", f"begin it with [{name}] on a line of its own")
        return value

    def only(self, content: Mapping[str, Any], known: Iterable[str], place: Place, where: str) -> None:
        """Refuse what is not ``known``."""
        names = tuple(known)
        for name in content:
            if name not in names:
                raise self.fail((*place, name), f"unknown key {name!r} in {where}", mend_name(name, names))

    def checked(self, keys: Sequence[Key], content: Mapping[str, Any], place: Place, where: str) -> dict[str, Any]:
        """The values of ``keys`` with defaults; others in ``content`` are left alone."""
        for key in keys:
            if key.name in content:
                value = content[key.name]
                wrong = key.wrong(value)
                if wrong is None and isinstance(value, float) and value in (float("inf"), float("-inf")):
                    wrong = f"{value!r} is no finite number"
                if wrong is not None:
                    raise self.fail((*place, key.name), f"{where} {key.name}: {wrong}", key.mend)
            elif key.required:
                raise self.fail(place, f"{where} has no {key.name!r}", f"add it: {key.mend}")
        return {key.name: content.get(key.name, key.default) for key in keys}

    def texts(self, value: object, place: Place, hint: str) -> tuple[str, ...]:
        """A list of texts, each once."""
        good = isinstance(value, list) and all(isinstance(v, str) and v and v.isprintable() for v in value)
        if not good or not isinstance(value, list):
            raise self.fail(place, f"{place[-1]}: {value!r} is no list of texts", hint)
        if len(set(value)) != len(value):
            raise self.fail(place, f"{place[-1]}: a text occurs twice", hint)
        return tuple(value)

    def forms(self) -> tuple[str, ...]:
        """The forms that the file has beside ``PAPER``."""
        told = self.table(self.content.get("form", {}), ("form",))
        if PAPER in told:
            raise self.fail(("form", PAPER), f"form {PAPER!r} is the file as it stands", "give it another name")
        for name in told:
            if (wrong := STEP[0].wrong(name)) is not None:
                raise self.fail(("form", name), f"form {wrong}", STEP[0].mend)
        return tuple(told)

    def lay(self, form: str) -> None:
        """Lay a form over the file. Only what can be laid is looked at here; the reader checks the rest."""
        known = self.forms()
        if form not in known:
            raise self.fail(("form", *known[:1]), f"there is no form {form!r}", f"one of {', '.join((PAPER, *known))}")
        here: Place = ("form", form)
        over = self.table(self.content["form"][form], here)
        self.only(over, (*(k.name for k in FORM), *FORM_TABLES), here, f"[form.{form}]")
        told = self.checked(FORM, over, here, f"[form.{form}]")
        self.content = copy.deepcopy(self.content)
        for name in ("quiet_s", "allow_substitutes", "base", "assume", "budget"):
            if name in over:
                self._put((), name, over[name], (*here, name))
        steps = self.content.get("step", [])
        overlays = self.table(over.get("step", {}), (*here, "step"))
        names = [s.get("name") for s in steps if isinstance(s, dict)] if isinstance(steps, list) else []
        for name in overlays:
            if name not in names:
                raise self.fail(
                    (*here, "step", name), f"there is no step {name!r}", f"known are {', '.join(map(str, names))}"
                )
        for index, step in enumerate(steps if isinstance(steps, list) else ()):
            if not isinstance(step, dict):
                continue
            place: Place = ("step", index)
            if told["repetitions"] is not None:
                self._put(place, "repetitions", told["repetitions"], (*here, "repetitions"))
            if told["immediate"]:
                self._put(place, "trigger", {"on": "always"}, (*here, "immediate"))
                step.pop("conditions", None)
            called = step.get("name")
            if isinstance(called, str) and called in overlays:
                origin = (*here, "step", called)
                self._step(place, step, self.table(overlays[called], origin), origin)
        if isinstance(steps, list):
            self._leave_out(steps)

    def _step(self, place: Place, step: dict[str, Any], overlay: dict[str, Any], origin: Place) -> None:
        own = tuple(k.name for k in STEP if k.name not in ("name", "experiment"))
        self.only(overlay, (*own, *STEP_TABLES, "skip", "without"), origin, "a form's step")
        for name in self.texts(
            overlay.get("without", []), (*origin, "without"), 'parameters to leave out, as in ["seconds"]'
        ):
            parameters = step.get("parameters")
            if not isinstance(parameters, dict) or name not in parameters:
                raise self.fail((*origin, "without"), f"the step has no parameter {name!r}", "take it out of 'without'")
            del parameters[name]
        skip = overlay.get("skip", False)
        if not isinstance(skip, bool):
            raise self.fail((*origin, "skip"), f"skip: {skip!r} is not true or false", "true or false")
        step["skip"] = skip
        for key, value in overlay.items():
            if key == "parameters" and isinstance(step.get(key), dict) and isinstance(value, dict):
                for inner, content in value.items():
                    self._put((*place, key), inner, content, (*origin, key, inner))
            elif key not in ("skip", "without"):
                self._put(place, key, value, (*origin, key))

    def _put(self, place: Place, name: str, value: object, origin: Place) -> None:
        within: Any = self.content
        for part in place:
            within = within[part]
        within[name] = copy.deepcopy(value)
        self.moved[(*place, name)] = origin

    def _leave_out(self, steps: list[Any]) -> None:
        """Steps that the form skips; the others keep their lines."""
        kept = [i for i, s in enumerate(steps) if not (isinstance(s, dict) and s.get("skip") is True)]
        moved = {p: o for p, o in self.moved.items() if p[0] != "step"}
        for new, old in enumerate(kept):
            moved[("step", new)] = ("step", old)
            for place, origin in self.moved.items():
                if place[:2] == ("step", old):
                    moved[("step", new, *place[2:])] = origin
        self.moved = moved
        steps[:] = [steps[i] for i in kept]
        for step in steps:
            if isinstance(step, dict):
                step.pop("skip", None)


def mend_name(name: str, known: Sequence[str]) -> str:
    """How an unknown key is mended: another unit of a known one, a slip of the pen, or the list."""
    stem = name
    for end in (
        "_mbit_per_s",
        "_kbit_per_s",
        "_mb",
        "_kb",
        "_gb",
        "_mib",
        "_seconds",
        "_minutes",
        "_min",
        "_h",
        "_pct",
        *_STEM_ENDS,
    ):
        if stem.lower().endswith(end):
            stem = stem[: -len(end)]
            break
    for other in known:
        for end in _STEM_ENDS:
            if other.endswith(end) and other[: -len(end)] == stem:
                return f"write {other}: the unit is in the name"
    near = difflib.get_close_matches(name, known, 1)
    return f"write {near[0]}" if near else f"known are {', '.join(known)}"


def _toml_error(file: str, text: str, message: str) -> str:
    what, _, rest = message.partition(" (at ")
    number = rest.partition("line ")[2].partition(",")[0]
    if not number.isdigit():
        number = str(max(1, len(text.splitlines())))
    return f"{file}:{number}: no TOML: {what[:1].lower() + what[1:]}; hint: write that line as TOML"
