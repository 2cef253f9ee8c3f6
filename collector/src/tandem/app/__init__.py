"""The collector as a whole: configuration, wiring, paired runs, the spool's one writer, the status for people."""


class MissingRequirementError(RuntimeError):
    """This machine has not what is required (rights, Multipath TCP, a program, disk); one line with the hint. Exit status 3."""
