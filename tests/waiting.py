"""How all tests in Python wait: for a condition, and no longer than that takes."""
import time


def wait_until(condition, seconds=120):
    """Returns what condition() returns, once that is true; nothing of the kind within `seconds` is an error."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds} seconds: {condition.__qualname__}")
        time.sleep(0.02)
    return found
