"""A stock Raspberry Pi OS Lite image becomes the image of one probe: files in its FAT partition, nothing mounted; and its card is written.

Standard library only, so that it runs wherever Python does.
"""


class ImageError(Exception):
    """One line with a hint. ``status``: exit status; 1 a disk refused or failed, 2 wrong usage or input, 3 a program is missing."""

    def __init__(self, line: str, status: int = 2) -> None:
        super().__init__(line)
        self.status = status
