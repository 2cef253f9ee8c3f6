"""Reads a campaign file, key by key: its lines, how a mistake is reported, forms laid over the file. Touches no network and knows no
experiment; only ``text_of`` reads the disk."""

from __future__ import annotations

import copy
import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tandem.schema.campaign import (
    MOST_ARMS,
    MOST_RUNS,
    PAPER,
    Arms,
    Budget,
    Campaign,
    CampaignError,
    Conditions,
    Draw,
    Requires,
    Step,
    Trigger,
)
from tandem.schema.campaign_keys import (
    ASSUME,
    BUDGET,
    CONDITIONS,
    CONTRADICTING,
    EVENT,
    FORM,
    FORM_TABLES,
    REQUIRES,
    SHAPE,
    STEP,
    STEP_TABLES,
    SYSCTLS,
    TOP,
    TOP_TABLES,
    TRIGGER,
    TRIGGERS,
    minutes,
)
from tandem.schema.toml_file import Key, Place, TomlReader

LONGEST_TEXT = 1_000_000
"""Bytes of a campaign's file."""
MOST_ROLES = 8
MOST_STEPS = 100

_LAWS = ("uniform", "log_uniform")
_VALUE = "a number, text in quotes, true or false, a table, or a list of these (one arm for each)"
_NO_SYN = (
    "simultaneous SYN existed only as a patch to a kernel of 2013; no kernel that can be had sends the second subflow's SYN "
    "before the first has answered"
)
_OTHER_UNITS = ("_mbit_per_s", "_kbit_per_s", "_mb", "_kb", "_gb", "_mib", "_seconds", "_minutes", "_min", "_h", "_pct")
_STEM_ENDS = ("_bit_per_s", "_percent", "_bytes", "_deg", "_ms", "_s", "_m")


def text_of(file: str) -> str:
    """Its text; CampaignError, one line with the file and the hint."""
    try:
        with Path(file).open("rb") as opened:
            content = opened.read(LONGEST_TEXT + 1)
    except OSError as error:
        raise CampaignError(f"{file}: {error.strerror}; hint: name a campaign or its file") from error
    if len(content) > LONGEST_TEXT:
        raise CampaignError(f"{file}: longer than {LONGEST_TEXT} bytes; hint: fewer steps")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CampaignError(f"{file}: is not UTF-8 text (byte {error.start}); hint: save it as UTF-8") from error


def parse(text: str, file: str, *, form: str = PAPER) -> Campaign:
    """The campaign in ``text`` in one of its forms; CampaignError for the first thing that is wrong. ``file``: for messages."""
    reader = _Reader(text, file)
    paper = reader.campaign(PAPER)
    if form == PAPER:
        return paper
    reader.lay(form)
    return reader.campaign(form)


def forms(text: str, file: str) -> dict[str, Campaign]:
    """Every form that the file has, ``PAPER`` first; CampaignError."""
    names = _Reader(text, file).forms()
    return {form: parse(text, file, form=form) for form in (PAPER, *names)}


class _Reader(TomlReader):
    """A file's content, read part by part. ``moved``: where a place of the form was written; ``skipped``: steps that it leaves out."""

    error = CampaignError

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file, "write that line as TOML")
        self.moved: dict[Place, Place] = {}
        self.skipped: set[Place] = set()
        self._check_sizes(self.content, ())

    def _check_sizes(self, value: object, place: Place) -> None:
        """Whole numbers of TOML have 64 bits; tomllib reads longer ones, which nothing here could write down."""
        if isinstance(value, dict):
            for name, inner in value.items():
                self._check_sizes(inner, (*place, name))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                self._check_sizes(inner, (*place, index))
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise self.fail(place, "a whole number of more than 64 bits", "a smaller one")

    def line(self, place: Place) -> int:
        rest: Place = ()
        origin = place
        while origin and origin not in self.moved:
            origin, rest = origin[:-1], (origin[-1], *rest)
        written = (*self.moved[origin], *rest) if origin else place
        return super().line(written)

    def hint_for_name(self, name: str, known: Sequence[str]) -> str:
        """What an unknown key should be: another unit of a known one, a slip of the pen, or the list."""
        stem = name
        for end in (*_OTHER_UNITS, *_STEM_ENDS):
            if stem.lower().endswith(end):
                stem = stem[: -len(end)]
                break
        for other in known:
            for end in _STEM_ENDS:
                if other.endswith(end) and other[: -len(end)] == stem:
                    return f"write {other}: the unit is in the name"
        near = difflib.get_close_matches(name, known, 1)
        return f"write {near[0]}" if near else super().hint_for_name(name, known)

    def section(
        self, value: object, place: Place, keys: Sequence[Key], where: str, beside: Iterable[str] = ()
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The table ``value``, which has ``keys`` and what is named in ``beside`` only, and the values of ``keys``."""
        content = self.table(value, place)
        self.only(content, (*(k.name for k in keys), *beside), place, where)
        return content, self.checked(keys, content, place, where)

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
        found = self.table(self.content.get("form", {}), ("form",))
        if PAPER in found:
            raise self.fail(("form", PAPER), f"form {PAPER!r} is the file as it stands", "give it another name")
        for name in found:
            if (wrong := STEP[0].wrong(name)) is not None:
                raise self.fail(("form", name), f"form {wrong}", STEP[0].hint)
        return tuple(found)

    def lay(self, form: str) -> None:
        """Lay a form over the file. Only what can be laid is looked at here; the reader checks the rest."""
        known = self.forms()
        if form not in known:
            raise self.fail(("form", *known[:1]), f"there is no form {form!r}", f"one of {', '.join((PAPER, *known))}")
        here: Place = ("form", form)
        over, values = self.section(self.content["form"][form], here, FORM, f"[form.{form}]", FORM_TABLES)
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
            if values["repetitions"] is not None:
                self._put(place, "repetitions", values["repetitions"], (*here, "repetitions"))
            if values["immediate"]:
                self._put(place, "trigger", {"on": "always"}, (*here, "immediate"))
                step.pop("conditions", None)
            called = step.get("name")
            if isinstance(called, str) and called in overlays:
                origin = (*here, "step", called)
                self._lay_step(place, step, self.table(overlays[called], origin), origin)

    def _lay_step(self, place: Place, step: dict[str, Any], overlay: dict[str, Any], origin: Place) -> None:
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
        if skip:
            self.skipped.add(place)
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

    def campaign(self, form: str) -> Campaign:
        content = self.content
        self.only(content, (*(k.name for k in TOP), *TOP_TABLES), (), "a campaign")
        top = self.checked(TOP, content, (), "the campaign")
        del top["format"]
        roles = self._roles(content)
        assume = self._by_role(content.get("assume", {}), ("assume",), roles, ASSUME)
        base = self._by_role(content.get("base", {}), ("base",), roles, SHAPE)
        steps = self._steps(content.get("step"), roles)
        return Campaign(
            **{**top, "quiet_s": float(top["quiet_s"])},
            roles=roles,
            steps=steps,
            budget=self._budget(content.get("budget", {}), roles),
            requires=self._requires(content.get("requires", {})),
            base=base,
            assumed_bit_per_s={r: q["rate_bit_per_s"] for r, q in assume.items() if "rate_bit_per_s" in q},
            form=form,
            file=str(self.file),
            lines={**self._lines(), **{(key,): self.line((key,)) for key in ("requires", "roles", "timezone")}},
        )

    def _lines(self) -> dict[Place, int]:
        """Where each step and its keys stand, by the step's name, in this form."""
        found: dict[Place, int] = {}
        for place, step in self._made(self.content["step"]):
            named = ("step", step["name"])
            found[named] = self.line(place)
            for key, value in step.items():
                found[*named, key] = self.line((*place, key))
                for inner in value if isinstance(value, dict) else ():
                    found[*named, key, inner] = self.line((*place, key, inner))
        return found

    def _made(self, steps: list[dict[str, Any]]) -> list[tuple[Place, dict[str, Any]]]:
        """The steps with their places, less those that the form skips."""
        return [(("step", index), s) for index, s in enumerate(steps) if ("step", index) not in self.skipped]

    def _roles(self, content: dict[str, Any]) -> tuple[str, ...]:
        hint = f'the campaign\'s words for its paths, one to {MOST_ROLES}, as in roles = ["wifi", "cellular"]'
        if "roles" not in content:
            raise self.fail((), "the campaign has no 'roles'", f"add {hint}")
        roles = self.texts(content["roles"], ("roles",), hint)
        if not 1 <= len(roles) <= MOST_ROLES or not all(re.fullmatch(r"[a-z][a-z0-9_-]{0,30}", r) for r in roles):
            raise self.fail(("roles",), f"roles: {', '.join(roles) or 'none'}", hint)
        if "random" in roles:
            raise self.fail(("roles",), "roles: 'random' has a meaning of its own", "take another word")
        return roles

    def _by_role(self, value: object, place: Place, roles: tuple[str, ...], keys: Any) -> dict[str, dict[str, float]]:  # noqa: ANN401 Key rows
        table = self.table(value, place)
        self.only(table, roles, place, f"[{place[0]}]")
        found = {}
        for role, content in table.items():
            within = (*place, role)
            inner = self.table(content, within)
            self.only(inner, [k.name for k in keys], within, f"[{'.'.join(map(str, within))}]")
            self._agreeing(inner, within)
            checked = self.checked(keys, inner, within, f"[{'.'.join(map(str, within))}]")
            found[role] = {k: float(v) for k, v in checked.items() if v is not None}
        return found

    def _budget(self, value: object, roles: tuple[str, ...]) -> Budget:
        content, values = self.section(value, ("budget",), BUDGET, "[budget]", ("role",))
        place: Place = ("budget", "role")
        table = self.table(content.get("role", {}), place)
        self.only(table, roles, place, "[budget.role]")
        for role, given in table.items():
            if (wrong := BUDGET[0].wrong(given)) is not None:
                raise self.fail((*place, role), f"[budget.role] {role}: {wrong}", BUDGET[0].hint)
        return Budget(**values, by_role=dict(table))

    def _requires(self, value: object) -> Requires:
        here: Place = ("requires",)
        content, values = self.section(value, here, REQUIRES, "[requires]", ("controllers", "substitutes"))
        hint = 'controllers by name, as in ["lia", "olia"]'
        controllers = self.texts(content.get("controllers", []), (*here, "controllers"), hint)
        substitutes = self.table(content.get("substitutes", {}), (*here, "substitutes"))
        for name, given in substitutes.items():
            if name not in controllers or not isinstance(given, str) or not given:
                what = f"substitutes: {name} = {given!r} is no controller for one that is required"
                raise self.fail((*here, "substitutes", name), what, 'as in lia = "reno", lia being in controllers')
        return Requires(values["scheduler"], controllers, dict(substitutes))

    def _steps(self, value: object, roles: tuple[str, ...]) -> tuple[Step, ...]:
        listed = isinstance(value, list) and all(isinstance(s, dict) for s in value)
        made = self._made(value) if listed and isinstance(value, list) else []
        if not made:
            raise self.fail(("step",), "the campaign has no steps", "begin each step with [[step]]")
        if len(made) > MOST_STEPS:
            raise self.fail(made[MOST_STEPS][0], f"{len(made)} steps", f"at most {MOST_STEPS}")
        steps: list[Step] = []
        for place, content in made:
            step = self._step(content, place, roles)
            if step.name in [s.name for s in steps]:
                raise self.fail((*place, "name"), f"step {step.name!r} is there already", "give each its own name")
            steps.append(step)
            if sum(s.run_count for s in steps) > MOST_RUNS:
                what = f"with step {step.name} the campaign has more than {MOST_RUNS} runs"
                raise self.fail(place, what, "fewer repetitions, or several campaigns")
        return tuple(steps)

    def _step(self, value: object, place: Place, roles: tuple[str, ...]) -> Step:
        content, values = self.section(value, place, STEP, "[[step]]", STEP_TABLES)
        parameters = self.table(content.get("parameters", {}), (*place, "parameters"))
        shape = self.table(content.get("shape", {}), (*place, "shape"))
        self.only(shape, roles, (*place, "shape"), "[step.shape]")
        step = Step(
            **values,
            parameters={n: self._arms(v, (*place, "parameters", n)) for n, v in parameters.items()},
            arms=self._explicit_arms(content.get("arms", []), (*place, "arms")),
            shape={r: self._numbers(q, (*place, "shape", r)) for r, q in shape.items()},
            sysctl=self._sysctl(content.get("sysctl", {}), (*place, "sysctl")),
            trigger=self._trigger(content.get("trigger", {"on": "always"}), (*place, "trigger")),
            conditions=self._conditions(content.get("conditions", {}), (*place, "conditions"), len(roles)),
        )
        self._combinations(step, place, roles)
        return step

    def _sysctl(self, value: object, place: Place) -> dict[str, str | int]:
        _, values = self.section(value, place, SYSCTLS, "[step.sysctl]")
        return {name: given for name, given in values.items() if given is not None}

    def _combinations(self, step: Step, place: Place, roles: tuple[str, ...]) -> None:
        if step.run_count > MOST_RUNS:
            what = f"step {step.name}: {step.arm_count} arms × {step.repetitions} repetitions are more than {MOST_RUNS} runs"
            raise self.fail((*place, "repetitions"), what, "fewer values or fewer repetitions")
        if step.arm_count > MOST_ARMS:
            what = f"step {step.name}: {step.arm_count} arms, more than {MOST_ARMS}"
            raise self.fail((*place, "parameters"), what, "fewer values, or several steps")
        for arm in step.arms:
            for name in arm:
                if name in step.parameters:
                    what = f"{name!r} stands in 'arms' and in 'parameters'"
                    raise self.fail((*place, "arms"), what, "keep one of them")
        named = [("parameters", n, v) for n in ("path", "primary") for v in step.parameters.get(n, ())]
        named += [("arms", n, arm[n]) for arm in step.arms for n in ("path", "primary") if n in arm]
        for key, name, value in named:
            if value not in (*roles, "random"):
                within = (*place, key, name) if key == "parameters" else (*place, key)
                raise self.fail(within, f"{name}: {value!r} is no role", f"random, or one of {', '.join(roles)}")

    def _trigger(self, value: object, place: Place) -> Trigger:
        content, values = self.section(value, place, TRIGGER, "[step.trigger]", ("labels", "event"))
        needs = TRIGGERS[values["on"]]
        for name in needs:
            if name not in content:
                hint = next(k.hint for k in (*TRIGGER, EVENT) if k.name == name)
                raise self.fail((*place, "on"), f"a trigger {values['on']!r} has no {name!r}", f"add it: {hint}")
        allowed = (*needs, "on", "gap_s", "expected_per_day")
        allowed += ("within_s",) if values["on"] in ("mobility_start", "event") else ()
        allowed += ("labels",) if values["on"] == "hand" else ()
        for name in content:
            if name not in allowed:
                raise self.fail((*place, name), f"a trigger {values['on']!r} takes no {name!r}", "take it out")
        event = content.get("event", [])
        kinds = self.texts([event] if isinstance(event, str) else event, (*place, "event"), EVENT.hint)
        for kind in (*kinds, *([""] if "event" in content and not kinds else [])):
            if (wrong := EVENT.wrong(kind)) is not None:
                raise self.fail((*place, "event"), f"[step.trigger] event: {wrong}", EVENT.hint)
        labels = self.texts(content.get("labels", []), (*place, "labels"), 'as in labels = ["still", "walk"]')
        span = minutes(values.pop("between") or "") or (None, None)
        return Trigger(**values, event=kinds, labels=labels, start=span[0], end=span[1])

    def _conditions(self, value: object, place: Place, paths: int) -> Conditions:
        _, values = self.section(value, place, CONDITIONS, "[step.conditions]")
        if values["paths_up"] is not None and values["paths_up"] > paths:
            what = f"paths_up: {values['paths_up']} of {paths} paths"
            raise self.fail((*place, "paths_up"), what, f"at most {paths}, as many as there are roles")
        span = minutes(values.pop("between") or "") or (None, None)
        return Conditions(**values, start=span[0], end=span[1])

    def _arms(self, value: object, place: Place) -> Arms:
        """The values that a parameter takes; a list is one for each element."""
        name = str(place[-1])
        if name in ("simultaneous_syn", "sim_syn"):
            raise self.fail(place, _NO_SYN, f"take {name!r} out")
        if not isinstance(value, list):
            return (self._value(value, place),)
        if not value:
            raise self.fail(place, f"{name}: an empty list has no arm", f"give {_VALUE}")
        values = tuple(self._value(v, place) for v in value)
        for index, one in enumerate(values):
            if any(one == other and type(one) is type(other) for other in values[:index]):
                raise self.fail(
                    place, f"{name}: {one!r} occurs twice", "name each value once; say 'repetitions' for more"
                )
        return values

    def _explicit_arms(self, value: object, place: Place) -> tuple[Mapping[str, Any], ...]:
        """``arms = [{…}, {…}]``: parameters that go together."""
        hint = 'as in arms = [{ kind = "mptcp" }, { kind = "tcp", path = "wifi" }]'
        if not isinstance(value, list) or not all(isinstance(arm, dict) for arm in value):
            raise self.fail(place, "arms: no list of tables", hint)
        found = []
        for arm in value:
            for name, one in arm.items():
                if name in ("simultaneous_syn", "sim_syn"):
                    raise self.fail(place, _NO_SYN, f"take {name!r} out")
                if isinstance(one, list):
                    raise self.fail(
                        place, f"arms: {name} has several values", "one value each; lists go into 'parameters'"
                    )
            found.append({name: self._value(one, place) for name, one in arm.items()})
        return tuple(found)

    def _numbers(self, value: object, place: Place) -> dict[str, Arms]:
        """A link's quantities, each with its arms."""
        table = self.table(value, place)
        known = {key.name: key for key in SHAPE}
        where = ".".join(str(p) for p in place if isinstance(p, str))
        self.only(table, known, place, f"[{where}]")
        self._agreeing(table, place)
        found: dict[str, Arms] = {}
        for name, given in table.items():
            values = given if isinstance(given, list) else [given]
            if not values:
                raise self.fail((*place, name), f"{name}: an empty list has no arm", known[name].hint)
            for one in values:
                if (wrong := known[name].wrong(one)) is not None:
                    raise self.fail((*place, name), f"{name}: {wrong}", known[name].hint)
            if len({float(v) for v in values}) != len(values):
                raise self.fail((*place, name), f"{name}: a value occurs twice", "name each value once")
            found[name] = tuple(float(v) for v in values)
        return found

    def _agreeing(self, table: Mapping[str, Any], place: Place) -> None:
        """Refuse a shape that says one thing twice."""
        for both, single in CONTRADICTING:
            for name in single:
                if both in table and name in table:
                    hint = f"{both} is for both ways; keep one of them"
                    raise self.fail((*place, name), f"{name} and {both} are both given", hint)

    def _value(self, value: object, place: Place) -> Any:  # noqa: ANN401 any JSON value, or a Draw
        if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in _LAWS:
            return self._draw(*next(iter(value.items())), place)
        if not _json(value):
            raise self.fail(place, f"{place[-1]}: {value!r} is no value of a parameter", f"give {_VALUE}")
        return value

    def _draw(self, law: str, ends: object, place: Place) -> Draw:
        hint = f"as in {place[-1]} = {{ {law} = [100, 1000000] }}"
        numbers = isinstance(ends, list) and all(isinstance(e, int | float) and not isinstance(e, bool) for e in ends)
        if not numbers or not isinstance(ends, list) or len(ends) != 2 or not all(abs(e) <= 10**15 for e in ends):
            raise self.fail(place, f"{place[-1]}: {law} needs two numbers", hint)
        low, high = ends
        if not low < high or (law == "log_uniform" and low <= 0):
            hint = f"{hint}, the smaller first, both above 0 for log_uniform"
            raise self.fail(place, f"{place[-1]}: {law} from {low} to {high}", hint)
        return Draw("uniform" if law == "uniform" else "log_uniform", low, high)


def _json(value: object) -> bool:
    if isinstance(value, dict):
        return all(_json(v) for v in value.values())
    if isinstance(value, list):
        return all(_json(v) for v in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, bool | int | str)
