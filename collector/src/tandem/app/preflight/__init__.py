"""The check before a kit is handed out: lines that pass or fail, each with its hint (docs/field/hand-out.md)."""
