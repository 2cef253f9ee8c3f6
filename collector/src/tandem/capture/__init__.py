"""Packet captures of headers, under one disk budget: tcpdump writes to a pipe, we write to disk."""

from tandem.capture.capture import Budget, Capture, CaptureError, CaptureResult, stop_all

__all__ = ["Budget", "Capture", "CaptureError", "CaptureResult", "stop_all"]
