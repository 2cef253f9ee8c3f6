"""Reads a campaign file, key by key. Pure: touches neither disk nor network, and knows no experiment."""

from __future__ import annotations

import re
from typing import Any

from tandem.schema.campaign import MOST_ARMS, MOST_RUNS, PAPER, Budget, Campaign, Conditions, Requires, Step, Trigger
from tandem.schema.campaign_keys import (
    ASSUME,
    BUDGET,
    CONDITIONS,
    EVENT,
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
from tandem.schema.campaign_source import Source
from tandem.schema.campaign_values import agreeing, arms_of, explicit_arms, numbers_of
from tandem.schema.toml_lines import Place

MOST_ROLES = 8
MOST_STEPS = 100


def parse(text: str, file: str, *, form: str = PAPER) -> Campaign:
    """The campaign in ``text`` in one of its forms; CampaignError for the first thing that is wrong. ``file``: for messages."""
    source = Source(text, file)
    reader = _Reader(source)
    paper = reader.campaign(PAPER)
    if form == PAPER:
        return paper
    source.lay(form)
    return reader.campaign(form)


def forms(text: str, file: str) -> dict[str, Campaign]:
    """Every form that the file has, ``PAPER`` first; CampaignError."""
    names = Source(text, file).forms()
    return {form: parse(text, file, form=form) for form in (PAPER, *names)}


class _Reader:
    def __init__(self, source: Source) -> None:
        self._source = source

    def campaign(self, form: str) -> Campaign:
        source = self._source
        content = source.content
        source.only(content, (*(k.name for k in TOP), *TOP_TABLES), (), "a campaign")
        top = source.checked(TOP, content, (), "the campaign")
        roles = self._roles(content)
        assume = self._by_role(content.get("assume", {}), ("assume",), roles, ASSUME)
        base = self._by_role(content.get("base", {}), ("base",), roles, SHAPE)
        steps = self._steps(content.get("step"), roles)
        lines = {("step", steps[i].name, *key[2:]): n for key, n in self._lines(len(steps)) for i in (int(key[1]),)}
        return Campaign(
            name=top["name"],
            title=top["title"],
            reference=top["reference"],
            seed=top["seed"],
            roles=roles,
            quiet_s=float(top["quiet_s"]),
            hold_maintenance=top["hold_maintenance"],
            on_interrupt=top["on_interrupt"],
            allow_substitutes=top["allow_substitutes"],
            steps=steps,
            budget=self._budget(source.table(content.get("budget", {}), ("budget",)), roles),
            requires=self._requires(source.table(content.get("requires", {}), ("requires",))),
            base=base,
            assumed_bit_per_s={r: q["rate_bit_per_s"] for r, q in assume.items() if "rate_bit_per_s" in q},
            form=form,
            timezone=top["timezone"],
            file=source.file,
            lines={**lines, **{(key,): source.line((key,)) for key in ("requires", "roles", "timezone")}},
        )

    def _lines(self, steps: int) -> list[tuple[Place, int]]:
        """Where each step and its keys stand, in this form."""
        found: list[tuple[Place, int]] = []
        for index in range(steps):
            places: list[Place] = [("step", index)]
            step = self._source.content["step"][index]
            for key, value in step.items():
                places.append(("step", index, key))
                if isinstance(value, dict):
                    places.extend(("step", index, key, inner) for inner in value)
            found.extend((place, self._source.line(place)) for place in places)
        return found

    def _roles(self, content: dict[str, Any]) -> tuple[str, ...]:
        hint = f'the campaign\'s words for its paths, one to {MOST_ROLES}, as in roles = ["wifi", "cellular"]'
        if "roles" not in content:
            raise self._source.fail((), "the campaign has no 'roles'", f"add {hint}")
        roles = self._source.texts(content["roles"], ("roles",), hint)
        if not 1 <= len(roles) <= MOST_ROLES or not all(re.fullmatch(r"[a-z][a-z0-9_-]{0,30}", r) for r in roles):
            raise self._source.fail(("roles",), f"roles: {', '.join(roles) or 'none'}", hint)
        if "random" in roles:
            raise self._source.fail(("roles",), "roles: 'random' has a meaning of its own", "take another word")
        return roles

    def _by_role(self, value: object, place: Place, roles: tuple[str, ...], keys: Any) -> dict[str, dict[str, float]]:  # noqa: ANN401 Key rows
        table = self._source.table(value, place)
        self._source.only(table, roles, place, f"[{place[0]}]")
        found = {}
        for role, content in table.items():
            within = (*place, role)
            inner = self._source.table(content, within)
            self._source.only(inner, [k.name for k in keys], within, f"[{'.'.join(map(str, within))}]")
            agreeing(self._source, inner, within)
            checked = self._source.checked(keys, inner, within, f"[{'.'.join(map(str, within))}]")
            found[role] = {k: float(v) for k, v in checked.items() if v is not None}
        return found

    def _budget(self, content: dict[str, Any], roles: tuple[str, ...]) -> Budget:
        self._source.only(content, (*(k.name for k in BUDGET), "role"), ("budget",), "[budget]")
        told = self._source.checked(BUDGET, content, ("budget",), "[budget]")
        place: Place = ("budget", "role")
        table = self._source.table(content.get("role", {}), place)
        self._source.only(table, roles, place, "[budget.role]")
        for role, value in table.items():
            if (wrong := BUDGET[0].wrong(value)) is not None:
                raise self._source.fail((*place, role), f"[budget.role] {role}: {wrong}", BUDGET[0].mend)
        return Budget(**told, by_role=dict(table))

    def _requires(self, content: dict[str, Any]) -> Requires:
        here: Place = ("requires",)
        self._source.only(content, ("scheduler", "controllers", "substitutes"), here, "[requires]")
        told = self._source.checked(REQUIRES, content, here, "[requires]")
        hint = 'controllers by name, as in ["lia", "olia"]'
        controllers = self._source.texts(content.get("controllers", []), (*here, "controllers"), hint)
        substitutes = self._source.table(content.get("substitutes", {}), (*here, "substitutes"))
        for name, value in substitutes.items():
            if name not in controllers or not isinstance(value, str) or not value:
                what = f"substitutes: {name} = {value!r} is no controller for one that is required"
                raise self._source.fail(
                    (*here, "substitutes", name), what, 'as in lia = "reno", lia being in controllers'
                )
        return Requires(told["scheduler"], controllers, dict(substitutes))

    def _steps(self, value: object, roles: tuple[str, ...]) -> tuple[Step, ...]:
        if not isinstance(value, list) or not value or not all(isinstance(s, dict) for s in value):
            raise self._source.fail(("step",), "the campaign has no steps", "begin each step with [[step]]")
        if len(value) > MOST_STEPS:
            raise self._source.fail(("step", MOST_STEPS), f"{len(value)} steps", f"at most {MOST_STEPS}")
        steps: list[Step] = []
        for index, content in enumerate(value):
            step = self._step(content, ("step", index), roles)
            if step.name in [s.name for s in steps]:
                raise self._source.fail(
                    ("step", index, "name"), f"step {step.name!r} is there already", "give each its own name"
                )
            steps.append(step)
            if sum(s.run_count for s in steps) > MOST_RUNS:
                what = f"with step {step.name} the campaign has more than {MOST_RUNS} runs"
                raise self._source.fail(("step", index), what, "fewer repetitions, or several campaigns")
        return tuple(steps)

    def _step(self, content: dict[str, Any], place: Place, roles: tuple[str, ...]) -> Step:
        source = self._source
        source.only(content, (*(k.name for k in STEP), *STEP_TABLES), place, "[[step]]")
        told = source.checked(STEP, content, place, "[[step]]")
        parameters = source.table(content.get("parameters", {}), (*place, "parameters"))
        shape = source.table(content.get("shape", {}), (*place, "shape"))
        source.only(shape, roles, (*place, "shape"), "[step.shape]")
        step = Step(
            **told,
            parameters={n: arms_of(source, v, (*place, "parameters", n)) for n, v in parameters.items()},
            arms=explicit_arms(source, content.get("arms", []), (*place, "arms")),
            shape={r: numbers_of(source, q, (*place, "shape", r)) for r, q in shape.items()},
            sysctl=self._sysctl(content.get("sysctl", {}), (*place, "sysctl")),
            trigger=self._trigger(content.get("trigger", {"on": "always"}), (*place, "trigger")),
            conditions=self._conditions(content.get("conditions", {}), (*place, "conditions"), len(roles)),
        )
        self._combinations(step, place, roles)
        return step

    def _sysctl(self, value: object, place: Place) -> dict[str, str | int]:
        content = self._source.table(value, place)
        self._source.only(content, [k.name for k in SYSCTLS], place, "[step.sysctl]")
        told = self._source.checked(SYSCTLS, content, place, "[step.sysctl]")
        return {name: value for name, value in told.items() if value is not None}

    def _combinations(self, step: Step, place: Place, roles: tuple[str, ...]) -> None:
        if step.run_count > MOST_RUNS:
            what = f"step {step.name}: {step.arm_count} arms × {step.repetitions} repetitions are more than {MOST_RUNS} runs"
            raise self._source.fail((*place, "repetitions"), what, "fewer values or fewer repetitions")
        if step.arm_count > MOST_ARMS:
            what = f"step {step.name}: {step.arm_count} arms, more than {MOST_ARMS}"
            raise self._source.fail((*place, "parameters"), what, "fewer values, or several steps")
        for arm in step.arms:
            for name in arm:
                if name in step.parameters:
                    what = f"{name!r} stands in 'arms' and in 'parameters'"
                    raise self._source.fail((*place, "arms"), what, "keep one of them")
        named = [("parameters", n, v) for n in ("path", "primary") for v in step.parameters.get(n, ())]
        named += [("arms", n, arm[n]) for arm in step.arms for n in ("path", "primary") if n in arm]
        for key, name, value in named:
            if value not in (*roles, "random"):
                within = (*place, key, name) if key == "parameters" else (*place, key)
                raise self._source.fail(
                    within, f"{name}: {value!r} is no role", f"random, or one of {', '.join(roles)}"
                )

    def _trigger(self, value: object, place: Place) -> Trigger:
        source = self._source
        content = source.table(value, place)
        source.only(content, (*(k.name for k in TRIGGER), "labels", "event"), place, "[step.trigger]")
        told = source.checked(TRIGGER, content, place, "[step.trigger]")
        needs = TRIGGERS[told["on"]]
        for name in needs:
            if name not in content:
                hint = next(k.mend for k in (*TRIGGER, EVENT) if k.name == name)
                raise source.fail((*place, "on"), f"a trigger {told['on']!r} has no {name!r}", f"add it: {hint}")
        allowed = (*needs, "on", "gap_s", "expected_per_day")
        allowed += ("within_s",) if told["on"] in ("mobility_start", "event") else ()
        allowed += ("labels",) if told["on"] == "hand" else ()
        for name in content:
            if name not in allowed:
                raise source.fail((*place, name), f"a trigger {told['on']!r} takes no {name!r}", "take it out")
        event = content.get("event", [])
        kinds = source.texts([event] if isinstance(event, str) else event, (*place, "event"), EVENT.mend)
        for kind in (*kinds, *([""] if "event" in content and not kinds else [])):
            if (wrong := EVENT.wrong(kind)) is not None:
                raise source.fail((*place, "event"), f"[step.trigger] event: {wrong}", EVENT.mend)
        labels = source.texts(content.get("labels", []), (*place, "labels"), 'as in labels = ["still", "walk"]')
        span = minutes(told.pop("between") or "") or (None, None)
        return Trigger(**told, event=kinds, labels=labels, start=span[0], end=span[1])

    def _conditions(self, value: object, place: Place, paths: int) -> Conditions:
        content = self._source.table(value, place)
        self._source.only(content, [k.name for k in CONDITIONS], place, "[step.conditions]")
        told = self._source.checked(CONDITIONS, content, place, "[step.conditions]")
        if told["paths_up"] is not None and told["paths_up"] > paths:
            what = f"paths_up: {told['paths_up']} of {paths} paths"
            raise self._source.fail((*place, "paths_up"), what, f"at most {paths}, as many as there are roles")
        span = minutes(told.pop("between") or "") or (None, None)
        return Conditions(**told, start=span[0], end=span[1])
