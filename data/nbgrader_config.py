"""nbgrader's settings for this course. It is yours: change what you like, `assign` never overwrites it."""

import os
import sys

c = get_config()  # noqa: F821 (nbgrader puts it there)

# A cell may take a minute; one that takes longer counts as failed, and the cells after it are run all the same.
c.Execute.timeout = 60  # seconds
c.Execute.startup_timeout = 120  # seconds until a kernel is there, on a busy machine
c.Execute.iopub_timeout = 20  # seconds to wait for the rest of a cell's output

# One core a kernel: the same times on a laptop and on a server with a hundred cores.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# Run in every kernel at its start: exit() ends a cell, as sys.exit() does, and not the kernel.
start = "from sys import exit; quit = exit"

# A kernel gets 2 GiB of memory; a cell that asks for more ends in a MemoryError. Linux alone can keep to such a limit.
if sys.platform == "linux":
    start += "; import resource as _r; _r.setrlimit(_r.RLIMIT_DATA, (2 << 30, 2 << 30)); del _r"

# --log-level=50: a kernel warns on every start, and prints a page when an answer breaks it.
c.Execute.extra_arguments = ["--log-level=50", f"--IPKernelApp.exec_lines={start}"]

# The stub in the source is what students get: nothing takes the solution's place.
c.ClearSolutions.code_stub = {"python": ""}

# A test cell that a student deleted comes back before grading.
c.OverwriteCells.add_missing_cells = True

# Feedback shows test cells without their hidden part. Take this line out to show it.
c.HTMLExporter.preprocessors = ["nbgrader.preprocessors.ClearHiddenTests"]

# A file of this name beside a submission would be imported in place of the course.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", "feedback", "course_utils*"]

# How `nbgrader zip_collect` reads a student's name: ann_week3.ipynb, or Moodle's Ann Lee_4711_assignsubmission_file_.
c.FileNameCollectorPlugin.named_regexp = (
    r".*[/\\]extracted[/\\](?:.*[/\\])?(?P<student_id>[^/\\_]+)_(?:.*[/\\_])?(?P<file_id>[^/\\_]+)$"
)

# For nbgrader's exchange on JupyterHub: the course's name there, and the folder that all users share.
# c.CourseDirectory.course_id = "embeddings"
# c.Exchange.root = "/srv/nbgrader/exchange"
