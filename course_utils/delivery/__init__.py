"""How the course reaches people: setting up, the lab, the tests, headless runs, the ledger."""


class CourseError(Exception):
    """What went wrong and what to do about it, in a sentence for the person at the keyboard."""
