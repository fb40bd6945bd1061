"""Prints a program of 400,000 events, in lines of number and size."""

import sys


def op_log(events):
    """Returns a log of sizes of all kinds, up to 1,500 live."""
    random = 12345
    live, lines = [], []
    for number in range(events):
        random = (random * 6364136223846793005 + 1442695040888963407) % 2**64
        if len(live) > 1500 or (live and random >> 60 < 7):
            place = (random >> 20) % len(live)
            live[place], live[-1] = live[-1], live[place]
            lines.append("%d -%d" % live.pop())
        else:
            size = 512 << (random >> 40) % 14
            live.append((number, size))
            lines.append("%d %d" % (number, size))
    return "\n".join(lines) + "\n"


sys.stdout.write(op_log(400000))
