"""A stock Raspberry Pi OS Lite image becomes the image of one probe, without being booted or mounted; and a card is written and read back.

Standard library only, so that it runs wherever Python does; the file systems are opened by mtools and e2fsprogs.
"""
