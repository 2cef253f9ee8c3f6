"""Tables: a row for each thing, its state in colour, links on to other boards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as sdk
from grafana_foundation_sdk.models import table as options

from tandem_dashboards import transform
from tandem_dashboards.influxql import Output, Select
from tandem_dashboards.look import Look, columns
from tandem_dashboards.panel import Frame, Panel, PanelError
from tandem_dashboards.target import Query, lettered


def table(
    title: str,
    description: str,
    *queries: Query | Select,
    show: Mapping[str, Look],
    joined_by: str | None = None,
    one_of: bool = False,
    sort_by: tuple[str, bool] | None = None,
    footer: bool = False,
    **frame: Unpack[Frame],
) -> Panel:
    """``show``: the columns in their order, by the query's names (``Time``, a tag, a column), each with what differs from the schema
    (``Look()`` when nothing); no others are shown. Several queries need ``joined_by``: the tag that rows are joined by; or
    ``one_of``: only one of them has rows at a time. ``sort_by``: a
    column, and whether from the greatest down. Units, words and colours follow from the schema."""
    targets = lettered(queries, "table")
    if len(targets) > 1 and joined_by is None and not one_of:
        raise PanelError(f"table {title!r}: several queries need joined_by")
    if len(targets) > 1 and "Time" in show:
        raise PanelError(f"table {title!r}: a join renames the times (Time 1, Time 2 …): select one as a column")
    outputs = _outputs(targets[:1] if one_of else targets, joined_by, title)
    known = {"Time", *(o.name for o in outputs)}
    own = frame.get("transformations", ())
    missing = [name for name in show if name not in known]
    if missing and not own:
        raise PanelError(
            f"table {title!r}: no query has the column {missing[0]!r}; they have {', '.join(sorted(known))}"
        )
    steps = [transform.joined(joined_by)] if joined_by else [transform.merged()] if one_of else []
    steps += [*own, *transform.only(list(show))]
    overrides = columns((o for o in outputs if o.name in show), show)
    titles = {o.name: _title(overrides, o.name) for o in outputs} | {
        name: look.title for name, look in show.items() if look.title
    }
    frame["transformations"] = (*steps,)
    return Panel(
        "table",
        title,
        description,
        tuple(targets),
        options.Options(
            show_header=True,
            sort_by=[common.TableSortByFieldState(titles.get(sort_by[0]) or sort_by[0], sort_by[1])]
            if sort_by
            else None,
            footer=common.TableFooterOptions(show=footer, reducer=["sum"], count_rows=False),
            cell_height=common.TableCellHeight.SM,
        ),
        sdk.FieldConfig(no_value="–", custom=common.TableFieldOptions(inspect=False, filterable=True)),
        tuple(overrides),
        **frame,
    )


def _outputs(targets: list[Query], joined_by: str | None, title: str) -> list[Output]:
    found: list[Output] = []
    for target in targets:
        tags = [Output(tag, target.select.measurement, None, "") for tag in target.select.grouped]
        for output in (*tags, *target.select.outputs):
            if any(o.name == output.name for o in found):
                if len(targets) > 1 and output.name != joined_by:
                    raise PanelError(
                        f"table {title!r}: two queries have a column {output.name!r}, which the join would rename: give one another name"
                    )
                continue
            found.append(output)
    return found


def _title(overrides: list[sdk.DashboardFieldConfigSourceOverrides], name: str) -> str | None:
    for override in overrides:
        if override.matcher.options == name:
            for prop in override.properties:
                if prop.id_val == "displayName":
                    return str(prop.value)
    return None
