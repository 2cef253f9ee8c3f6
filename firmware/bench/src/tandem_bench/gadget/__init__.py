"""The bench's modem as a real USB device: Linux's gadget stack, by configfs."""
