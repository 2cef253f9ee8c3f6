"""The AT dialogue with a modem: a pure grammar, a pure dialogue, and a channel that carries them over a serial port."""
