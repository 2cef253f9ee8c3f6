"""Huawei sticks and modules with an AT port: E33xx in stick mode, ME909."""
