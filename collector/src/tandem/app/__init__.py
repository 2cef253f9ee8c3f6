"""The collector as a whole: configuration, wiring, paired runs, the spool's one writer, the status for people."""
