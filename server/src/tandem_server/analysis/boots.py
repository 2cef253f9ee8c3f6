"""Which boots of the probe a campaign's records come from: a probe may restart in its midst, and a card may be another one's."""

from __future__ import annotations

from collections import defaultdict
from statistics import median

from tandem_server.analysis.folder import CampaignFolder
from tandem_server.analysis.reading import text
from tandem_server.analysis.source import Row, Source


def of_account(campaign: CampaignFolder, source: Source) -> set[str]:
    """The boots whose records the collector's account counts: all of its spool, of which it is the sum over all restarts. Where no
    spool told of itself: those of the folder, or of the polls."""
    spool_of = {
        row.tags.get("boot", ""): row.fields.get("spool")
        for row in source.rows("spool", campaign.probe, None, None, ["spool"])
    }
    last = text(campaign.collector or {}, "boot")
    own = {boot for manifest in campaign.manifests if (boot := text(manifest, "boot")) is not None}
    own |= {last} if last is not None else set()
    spool = spool_of.get(last or "") or next((told for boot, told in spool_of.items() if boot in own), None)
    if spool is not None:
        return {boot for boot, told in spool_of.items() if told == spool} | {
            boot for boot in own if boot not in spool_of
        }
    if not own:
        own = {row.tags.get("boot", "") for row in source.rows("radio", campaign.probe, None, None, [])}
    return own


def of_bench(campaign: CampaignFolder, source: Source, offset_ns: int) -> str | None:
    """The boot in which the bench ran, whose monotonic clock the truth has: as campaign.json tells, else the one whose offset of UTC to
    the monotonic clock is next to ``offset_ns``. None: the probe recorded in one boot only, which is it."""
    offsets: dict[str, list[int]] = defaultdict(list)
    for measurement in ("event", "health", "radio"):
        for row in source.rows(measurement, campaign.probe, None, None, []):
            if (offset := _offset_ns(row)) is not None:
                offsets[row.tags.get("boot", "")].append(offset)
    if len(offsets) < 2:
        return None
    told = text(campaign.campaign, "boot")
    return told or min(offsets, key=lambda boot: abs(median(offsets[boot]) - offset_ns))


def _offset_ns(row: Row) -> int | None:
    monotonic = row.fields.get("monotonic_ns")
    return row.utc_ns - int(monotonic) if isinstance(monotonic, int | float) else None
