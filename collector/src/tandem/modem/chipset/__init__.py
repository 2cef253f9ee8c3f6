"""Modules with their chipset's own commands: Nordic's nRF91, Sequans' Monarch, OpenLuat's Air7xx (Unisoc, ASR)."""
