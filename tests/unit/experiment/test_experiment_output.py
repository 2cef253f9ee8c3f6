"""Lines to somebody who has gone."""

import os

from tandem.experiment.base import Output, Stop


def test_when_nobody_reads_any_more_it_stops_and_what_is_left_in_the_stream_goes_nowhere() -> None:
    reading, writing = os.pipe()
    stop = Stop()
    with os.fdopen(writing, "w") as stream:
        output = Output(stream, stop)
        output.line("sample", number=1)
        assert not stop.requested
        os.close(reading)
        stream.write("half a line, by somebody else")
        output.line("sample", number=2)
        assert stop.requested
        stream.flush()  # as Python does at exit
