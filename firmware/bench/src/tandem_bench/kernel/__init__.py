"""The bench on another kernel: a virtual machine, in it the networks, the server and the collector."""

SEED, SEED_BYTES = "seed", 512
"""A file in the machine's folder: random bytes of the machine outside. Linux 4.14 without a virtio driver for them takes its own from
interrupts, and whoever asks for random numbers waits for minutes."""
