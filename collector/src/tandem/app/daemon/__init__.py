"""The running collector: its life, its main loop, its hardware, its accounts and its status."""
