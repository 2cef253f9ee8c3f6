"""What ends the program: one line each, with its exit status."""


class ImageError(Exception):
    """Something that a person has to mend; the text is one line and says how."""

    status = 2


class RefusedError(ImageError):
    """Asked for properly, and not done: a disk in use, a card that gives back something else."""

    status = 1


class LackingError(ImageError):
    """This machine lacks a program that is needed."""

    status = 3
