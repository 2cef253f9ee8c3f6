"""An event record in one short line, for people. Pure."""

from __future__ import annotations

from tandem.schema.record import Record


def describe(event: Record) -> str:
    """What the record's fields say; empty when the kind says it all."""
    fields = event.fields
    parts: list[str] = []
    change = fields.get("change_db")
    if isinstance(change, int | float):
        parts.append(f"{change:+.1f} dB {str(fields.get('quantity', '')).removesuffix('_dbm').upper()}".rstrip())
    before, after = fields.get("from_eci"), fields.get("to_eci")
    if isinstance(before, int) and isinstance(after, int):
        if fields.get("handover_kind") == "sector":
            parts.append(f"sector {before & 255} → {after & 255} of eNB {after >> 8}")
        else:
            parts.append(f"eNB {before >> 8}/{before & 255} → {after >> 8}/{after & 255}")
    if fields.get("state"):
        parts.append(str(fields["state"]).replace("_", " "))
    if fields.get("speed_class") and event.tags.get("kind") == "mobility_stop":
        parts.append(f"{fields['speed_class']} speed by {fields.get('speed_class_by')}")
    if fields.get("detail") and fields["detail"] != event.tags.get("kind", "").replace("_", " "):
        parts.append(str(fields["detail"]))
    return ", ".join(parts)
