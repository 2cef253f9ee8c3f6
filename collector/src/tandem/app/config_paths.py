"""The list ``[[path]]`` of the configuration: paths, their modems and connections, their SIMs' plans."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tandem.app.config_modem import SIM_SECRET, ModemConfig, PathConfig, connection_of, drivers, misfit
from tandem.app.config_plan import PlanConfig
from tandem.app.config_schema import MOST_PATHS, TABLES
from tandem.app.position_config import Checked, Fail
from tandem.schema.toml_lines import Place

_WITHIN = ("modem", "plan")
"""Tables inside a path's."""


@dataclass(frozen=True, slots=True)
class PathsReader:
    """``checked`` and ``fail``: as the whole file's reader does it; ``here``: the file's folder; ``folder``: the probe's."""

    checked: Checked
    fail: Fail
    here: Path
    folder: Path

    def paths(self, listed: object) -> tuple[PathConfig, ...]:
        """The paths, in the file's order; ``fail`` for the first thing that is wrong."""
        if not isinstance(listed, list) or not all(isinstance(p, dict) for p in listed) or not listed:
            raise self.fail(("path",), "'path' is no list of tables", "begin each path with [[path]]")
        if len(listed) > MOST_PATHS:
            raise self.fail(("path", MOST_PATHS), f"{len(listed)} paths", f"at most {MOST_PATHS}")
        paths: list[PathConfig] = []
        for index, content in enumerate(listed):
            place: Place = ("path", index)
            path = self._path(content, place)
            for other in paths:
                self._same(path, other, place)
            paths.append(path)
        return tuple(paths)

    def _path(self, content: dict[str, Any], place: Place) -> PathConfig:
        values = self.checked(TABLES["path"], {k: v for k, v in content.items() if k not in _WITHIN}, place)
        for name in _WITHIN:
            if name in content and not isinstance(content[name], dict):
                raise self.fail((*place, name), f"{name!r} is no table", f"begin it with [path.{name}]")
        modem = self._modem(content["modem"], (*place, "modem"), values) if "modem" in content else None
        if (values["interface"] is None) == (values["usb"] is None):
            what = "has neither 'interface' nor 'usb'" if values["usb"] is None else "has both 'interface' and 'usb'"
            mend = "give one: the interface's name, or the USB place of its modem"
            raise self.fail((*place, *(() if values["usb"] is None else ("usb",))), f"[path] {what}", mend)
        plan = None
        if "plan" in content:
            told = self.checked(TABLES["path.plan"], content["plan"], (*place, "plan"))
            plan = PlanConfig(told["bytes"], told["reset_day"], float(told["warn_share"]))
        return PathConfig(**values, modem=modem, plan=plan)

    def _same(self, path: PathConfig, other: PathConfig, place: Place) -> None:
        for what in ("name", "interface", "usb"):
            mine = getattr(path, what)
            if mine is not None and getattr(other, what) == mine:
                raise self.fail((*place, what), f"{what} {mine!r} is another path's already", "give each path its own")
        for what in ("port", "usb"):
            mine = getattr(path.modem, what, None)
            # Sticks of one kind have the same web address; their interfaces tell them apart.
            if mine is not None and mine == getattr(other.modem, what, None) and "://" not in mine:
                within = (*place, "modem", what)
                raise self.fail(within, f"{what} {mine!r} is another path's already", "give each its own")

    def _modem(self, content: dict[str, Any], place: Place, path: dict[str, Any]) -> ModemConfig:
        """The modem of a path, whose checked values are ``path``: a modem's place tells where its network function is, and the other
        way round."""
        told = self.checked(TABLES["path.modem"], {k: v for k, v in content.items() if k != "connection"}, place)
        if told["port"] is None and told["usb"] is None and path["usb"] is not None:
            told["usb"] = path["usb"].partition(":")[0]
        if path["interface"] is None and path["usb"] is None and told["usb"] is not None:
            path["usb"] = told["usb"].partition(":")[0]
        modem = ModemConfig(**told, sim_secret=self.folder / SIM_SECRET)
        if (modem.port is None) == (modem.usb is None):
            what = "[path.modem] has neither 'port' nor 'usb'" if modem.port is None else "both 'port' and 'usb'"
            raise self.fail(place, what, 'name one: port = "/dev/ttyUSB2", or usb = "1-1.2"')
        connection = content.get("connection")
        wrong = misfit(modem.port or "", modem.driver, connection is not None)
        if wrong is not None:
            raise self.fail((*place, wrong[0]), wrong[1], wrong[2])
        families = ("auto", *drivers())
        if modem.driver not in families:
            what = f"path.modem.driver: there is no driver {modem.driver!r}"
            raise self.fail((*place, "driver"), what, f"known are {', '.join(families)}")
        if connection is None:
            return modem
        within = (*place, "connection")
        if not isinstance(connection, dict):
            raise self.fail(within, "'connection' is no table", "begin it with [path.modem.connection]")
        values = self.checked(TABLES["path.modem.connection"], connection, within)
        return replace(modem, connection=connection_of(values, self.here, self.folder))
