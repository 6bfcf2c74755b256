"""Running the suite: one pytest over the tests and, through nbval, over every notebook."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from course_utils.delivery.chapters import chapters
from course_utils.places import ROOT

CHOICE = {
    "quick": ["-m", "not slow and not browser and not heavy"],
    "usual": ["-m", "not heavy"],
    "full": [],
}
NBVAL = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=120"]


def command(scope: str, extra: Sequence[str] = ()) -> list[str]:
    """The pytest command of a scope: quick leaves out notebooks and what is slow, full leaves out nothing."""
    notebooks = [] if scope == "quick" else [*NBVAL, *(str(path) for path in chapters().values())]
    return [sys.executable, "-m", "pytest", "tests", *notebooks, *CHOICE[scope], *extra]


def run_tests(scope: str, extra: Sequence[str] = ()) -> int:
    """Run pytest with strict claims and an empty place for progress. Returns its exit status."""
    with tempfile.TemporaryDirectory(prefix="course-progress-") as progress:
        settings = {"COURSE_STRICT": "1", "COURSE_PROGRESS": progress}
        return subprocess.call(command(scope, extra), cwd=ROOT, env=os.environ | settings)
