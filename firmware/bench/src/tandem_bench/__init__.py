"""What stands in for hardware: commutes, radio, AT modems, links and topology. Imports neither collector nor server."""

__version__ = "0.1.0"
