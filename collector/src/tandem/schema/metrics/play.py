"""What a play of DASH measures: each segment, the buffer once a second, and the play as a whole."""

from __future__ import annotations

from tandem.schema.metrics.table import Field, Measurement

PLAYBACK_STATES = ("starting", "playing", "stalled", "ended")
"""``state`` of a dash_playback record: nothing shown yet / the picture runs / it stands still, the buffer is empty / the end."""

_OF_THE_PLAY = ("run", "kind", "path", "operator")
"""``kind``: mptcp or tcp, the arm of the play; ``path``: of Multipath TCP the primary one, and its operator."""

DASH_SEGMENT = Measurement(
    "dash_segment",
    "one segment of a play of DASH, when its last byte came",
    _OF_THE_PLAY,
    (
        Field("number", "int", "", "from 1, in the order in which they came", 1),
        Field("media_s", "float", "s", "where in the video it begins", 0),
        Field("segment_s", "float", "s", "how long it is", 0),
        Field("representation", "str", "", "the manifest's id of it"),
        Field("bitrate_bit_per_s", "float", "bit/s", "of the representation, by the manifest", 0),
        Field("height", "int", "", "lines of the picture, by the manifest", 0),
        Field("bytes", "int", "B", "payload", 0),
        Field("first_byte_ms", "float", "ms", "from the request to the first byte", 0),
        Field("duration_ms", "float", "ms", "from the request to the last byte", 0),
        Field("goodput_bit_per_s", "float", "bit/s", "bytes · 8 / duration", 0),
        Field("buffer_before_ms", "float", "ms", "video in the buffer at the request", 0),
        Field("buffer_level_ms", "float", "ms", "video in the buffer with this segment in it", 0),
        Field("stall_ms", "float", "ms", "how long playback stood still meanwhile", 0),
        Field("primary_share", "float", "", "of the bytes that TCP received meanwhile, on the primary path", 0, 1),
    ),
)

DASH_PLAYBACK = Measurement(
    "dash_playback",
    "a play of DASH as its watcher has it, once a second while it goes on, when its state changes and at its end",
    _OF_THE_PLAY,
    (
        Field("state", "str", "", "one of PLAYBACK_STATES"),
        Field("buffer_level_ms", "float", "ms", "video that has come and is not yet shown", 0),
        Field("played_s", "float", "s", "video shown so far", 0),
        Field("stalled_s", "float", "s", "all stalls so far, one that goes on until now", 0),
    ),
)

DASH = Measurement(
    "dash",
    "one play of DASH when it ended, whole or not",
    (*_OF_THE_PLAY, "rule", "campaign"),
    (
        Field("whole", "bool", "", "it was played to its end"),
        Field("segments", "int", "", "that came", 0),
        Field("bytes", "int", "B", "payload of the segments", 0),
        Field(
            "goodput_bit_per_s", "float", "bit/s", "their bytes · 8 / the time from each one's request to its end", 0
        ),
        Field("startup_delay_ms", "float", "ms", "from the manifest's request to the picture; absent: never began", 0),
        Field("media_s", "float", "s", "video that came", 0),
        Field("play_s", "float", "s", "from the manifest's request to the end", 0),
        Field("stalls", "int", "", "how often playback stood still after its beginning", 0),
        Field("stalled_s", "float", "s", "for how long in all", 0),
        Field("stall_ratio", "float", "", "stalled_s as a part of the time since playback began", 0, 1),
        Field("switches", "int", "", "changes of representation from one segment to the next", 0),
        Field("bitrate_bit_per_s", "float", "bit/s", "mean over the video of the bitrates by the manifest", 0),
        Field("media_bit_per_s", "float", "bit/s", "bits of the segments by second of video", 0),
        Field(
            "qoe_bit_per_s", "float", "bit/s", "linear score of Yin et al. by segment, balanced weights; may be below 0"
        ),
        Field("primary_share", "float", "", "of the bytes that TCP received, on the primary path", 0, 1),
        Field("connect_ms", "float", "ms", "establishment of the first connection", 0),
        Field("first_byte_ms", "float", "ms", "of the first segment, from its request on", 0),
        Field("reconnects", "int", "", "connections after the first", 0),
        Field("fallback", "bool", "", "Multipath TCP that fell back to TCP, in any of the connections"),
        Field("content", "str", "", "the presentation and its manifest on the server"),
    ),
)
"""``rule``: who chose the representations: fixed, throughput, bba, bola-e, dynamic, or VLC's logic as vlc-NAME."""
