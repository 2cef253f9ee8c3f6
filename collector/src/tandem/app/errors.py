"""What ends a start of the collector."""


class MissingRequirementError(RuntimeError):
    """This machine has not what is required (rights, Multipath TCP, a program, disk); one line with the hint. Exit status 3."""
