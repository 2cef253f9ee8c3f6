"""DASH presentations that the endpoint serves: made from a video, or synthetic; read back file by file."""
