"""MikroTik's R11e-LTE and R11e-LTE6, whose cell commands are ZTE's."""
