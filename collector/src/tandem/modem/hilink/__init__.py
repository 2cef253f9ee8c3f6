"""Huawei sticks with HiLink firmware: no AT port, a web server of their own."""
