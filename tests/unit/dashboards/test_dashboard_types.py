"""Grafana's published types (npm's @grafana/schema) read every board: unknown keys and wrong values are errors of the compiler."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tandem_dashboards import generate
from tandem_dashboards.query_runner import panels_of

ROOT = Path(__file__).resolve().parents[3]
TYPES = Path(os.environ.get("TANDEM_GRAFANA_TYPES") or ROOT / "build/types")
TSC = TYPES / "node_modules/typescript/bin/tsc"
COMPOSABLE = {
    "barchart": "BarChart",
    "bargauge": "BarGauge",
    "geomap": "Geomap",
    "histogram": "Histogram",
    "stat": "Stat",
    "state-timeline": "StateTimeline",
    "table": "Table",
    "text": "Text",
    "timeseries": "TimeSeries",
}
"""Type of a panel → the name that its types' file begins with."""
WITH_FIELD_CONFIG = {"barchart", "histogram", "state-timeline", "table", "timeseries"}
UNTYPED = {"targets", "transformations"}
"""Of the data source, and of transformations: the types have any record there."""

# Enumerations in the types are named; JSON has their values. Everything else stays as it is, so that unknown keys are found.
PLAIN = """
type Plain<T> = T extends string ? `${T}`
  : T extends number ? (number extends T ? number : `${T}` extends `${infer N extends number}` ? N : never)
  : T extends boolean | null | undefined ? T
  : T extends (infer U)[] ? Plain<U>[]
  : T extends object ? { [K in keyof T]: Plain<T[K]> }
  : T;
"""


def source(boards: dict[str, dict]) -> str:
    """TypeScript that holds every board, and each panel's options and field config, against its type."""
    lines = ['import type { Dashboard, Panel, RowPanel } from "@grafana/schema";']
    kinds = {panel["type"] for board in boards.values() for panel in panels_of(board)}
    for kind in sorted(kinds):
        folder, name = kind.replace("-", ""), COMPOSABLE[kind]
        where = f"@grafana/schema/dist/esm/raw/composable/{folder}/panelcfg/x/{name}PanelCfg_types.gen"
        lines.append(f'import type * as {name} from "{where}";')
    lines.append(PLAIN)
    for n, board in enumerate(boards.values()):
        without = json.loads(json.dumps({key: value for key, value in board.items() if key != "panels"}))
        for annotation in without["annotations"]["list"]:
            # The rest of it is the data source's own.
            annotation["target"] = {key: annotation["target"][key] for key in ("refId", "queryType")}
        lines.append(f"export const board{n}: Plain<Omit<Dashboard, 'panels'>> = {json.dumps(without)};")
        for row in (panel for panel in board["panels"] if panel["type"] == "row"):
            head = {key: value for key, value in row.items() if key != "panels"}
            lines.append(f"export const row{n}_{row['id']}: Plain<Omit<RowPanel, 'panels'>> = {json.dumps(head)};")
        for panel in panels_of(board):
            lines += _panel(panel, f"{n}_{panel['id']}")
    return "\n".join(lines) + "\n"


def _panel(panel: dict, ending: str) -> list[str]:
    name = COMPOSABLE[panel["type"]]
    apart = {"options", "fieldConfig", *UNTYPED}
    plain = {key: value for key, value in panel.items() if key not in apart}
    lines = [
        f"export const panel{ending}: Plain<Omit<Panel, {' | '.join(map(repr, sorted(apart)))}>> = {json.dumps(plain)};"
    ]
    lines.append(f"export const options{ending}: Plain<Partial<{name}.Options>> = {json.dumps(panel['options'])};")
    config = json.loads(json.dumps(panel["fieldConfig"]))
    custom = config["defaults"].pop("custom", None)
    lines.append(f"export const config{ending}: Plain<Panel['fieldConfig']> = {json.dumps(config)};")
    if custom is not None:
        assert panel["type"] in WITH_FIELD_CONFIG, panel["type"]
        lines.append(f"export const custom{ending}: Plain<Partial<{name}.FieldConfig>> = {json.dumps(custom)};")
    return lines


def complaints(folder: Path, text: str) -> list[str]:
    """The compiler's, about ``text``."""
    node = shutil.which("node")
    if node is None or not TSC.is_file():
        pytest.skip(f"no node, or no types at {TYPES}: ./kit test --all fetches them where npm is there")
    (folder / "boards.ts").write_text(text, encoding="utf-8")
    (folder / "node_modules").symlink_to(TYPES / "node_modules")
    command = [node, str(TSC), "--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--target", "es2022"]
    done = subprocess.run(
        [*command, "--moduleResolution", "bundler", "boards.ts"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 or "error TS" in done.stdout, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "error TS" in line]


def test_every_board_is_of_grafanas_types(tmp_path):
    boards = {name: json.loads(text) for name, text in generate.boards.texts().items()}
    assert complaints(tmp_path, source(boards)) == []
