"""What grading costs: seconds a submission and peak memory, for 10 and for 50 submissions.

Run it on a quiet machine, in the course's environment: python tests/bench_grading.py
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mischief
import psutil

NUMBERS = (10, 50)
PICKED = ["--exercises", "10.1", "10.2", "15.3", "--points", "2", "3", "5"]


def course(*arguments: str) -> list[str]:
    """The command line of a command of the course."""
    return [sys.executable, "-m", "course_utils", *arguments]


def measured(command: list[str], folder: Path) -> tuple[float, float, float]:
    """Seconds, and peak MB of the process itself and of it with its kernels, of a command in the folder."""
    start, own, all_of_it = time.perf_counter(), 0.0, 0.0
    process = psutil.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        try:
            sizes = [one.memory_info().rss for one in (process, *process.children(recursive=True))]
        except psutil.NoSuchProcess:
            continue
        own, all_of_it = max(own, sizes[0]), max(all_of_it, sum(sizes))
        time.sleep(0.05)
    return time.perf_counter() - start, own / 1e6, all_of_it / 1e6


def main() -> None:
    """Print a line for each number of submissions, right and half done in turn, and for a run that finds no change."""
    for number in NUMBERS:
        with tempfile.TemporaryDirectory(prefix="course-bench-") as place:
            folder = Path(place) / "course"
            subprocess.check_call(course("assign", "--name", "week3", *PICKED, "--out", str(folder)))
            generate = [sys.executable, "-m", "nbgrader", "generate_assignment", "week3"]
            subprocess.check_call(generate, cwd=folder, stderr=subprocess.DEVNULL)
            for i in range(number):
                hand_in = mischief.half_done if i % 2 else mischief.full_marks
                hand_in(folder / "release" / "week3" / "week3.ipynb", folder / "submitted" / f"student {i}" / "week3")
            for what in ("graded", "unchanged"):
                seconds, own, everything = measured(course("grade", "week3"), folder)
                each = f"{seconds / number:5.2f} s each, {seconds:6.1f} s in all"
                print(f"{number:3} {what:9} {each}; peak {own:4.0f} MB, with kernels {everything:4.0f} MB", flush=True)


if __name__ == "__main__":
    main()
