"""The check before a kit is handed out: lines that pass or fail, each with its mend (docs/contributing/collector.md)."""
