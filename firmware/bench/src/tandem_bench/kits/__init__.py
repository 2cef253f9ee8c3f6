"""Several kits on one bench, at one server: what it exports of them beside their own folders."""
