"""python3 -m course_utils VERB. This file parses on Pythons that are too old, so that it can tell them so."""

from __future__ import print_function

import sys

NEEDED = (3, 11)


def main():
    """Say in one sentence that this Python is too old, or hand on to the commands. Returns the status."""
    if sys.version_info < NEEDED:
        print(
            "course: Python %d.%d or newer is needed, this is %d.%d (%s); "
            "install a newer one and start the command with it."
            % (NEEDED + tuple(sys.version_info[:2]) + (sys.executable,)),
            file=sys.stderr,
        )
        return 1
    from course_utils.delivery import cli

    return cli.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
