"""ZTE sticks and routers by their web server (``/goform/goform_get_cmd_process``)."""
