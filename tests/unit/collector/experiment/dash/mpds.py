"""MPDs for tests: a frame around one period's content."""

URL = "http://203.0.113.10:8480/v1/content/film/film.mpd"
HERE = "http://203.0.113.10:8480/v1/content/film/"


def mpd(content: str, duration: str = 'mediaPresentationDuration="PT60S"', more: str = "") -> bytes:
    """A whole MPD around ``content`` (periods)."""
    return (
        f'<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" {duration}>'
        f"{more}{content}</MPD>"
    ).encode()


def one_period(content: str, **more: str) -> bytes:
    """One period, one adaptation set of video."""
    return mpd(f'<Period><AdaptationSet contentType="video">{content}</AdaptationSet></Period>', **more)


def representation(content: str = "", name: str = "v1", bandwidth: int = 1_000_000, more: str = "") -> str:
    """One representation."""
    return f'<Representation id="{name}" bandwidth="{bandwidth}" {more}>{content}</Representation>'
