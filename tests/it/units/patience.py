"""Waiting for what a client shows, which may take a moment."""

import time

PATIENCE = 60


def eventually(what, poll):
    """Waits until `poll` returns something true, and returns it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = poll()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("timed out waiting for " + what)
