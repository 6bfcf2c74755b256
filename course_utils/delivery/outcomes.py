"""Reading what nbgrader made of a submission: why points are missing, and whether its marks mean anything."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course_utils.delivery.submissions import Ungradable

MOST_OUTPUT = 10_000_000  # characters that a submission may print
DIED = "the kernel died: os._exit(), a crash, or more memory than there is"
STUCK = "a cell could not be stopped: an endless loop that catches its own interruption, or output without end"
SILENT = "the kernel answered no more: an answer closed what it speaks through, or hangs"
NO_COURSE = "the kernel could not import course_utils, so no test could run: grade from the course's environment"


def why_nbgrader_failed(log: str) -> str:
    """The reason in the log of an autograde that did not succeed."""
    for error, reason in (("DeadKernelError", DIED), ("CellTimeoutError", STUCK)):
        if error in log:
            return reason
    said = re.findall(r"^\s*([\w.]*(?:Error|Exception): .+)$", log, re.M)
    return f"nbgrader failed: {said[-1] if said else 'it does not say why'}"


def why_points_are_missing(graded: Path, submitted: Path) -> Iterator[str]:
    """A sentence for each test that failed in an autograded notebook.

    Raises Ungradable, naming the submitted file, where the marks say nothing about the answers.
    """
    notebook = nbformat.read(graded, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    sizes = {_label(cell): len(json.dumps(cell.outputs)) for cell in code}
    if _answers_no_more(code):
        raise Ungradable(submitted, SILENT)
    total = sum(sizes.values())
    if total > MOST_OUTPUT:
        most = max(sizes, key=sizes.get)
        raise Ungradable(submitted, f"oversized output: {total / 1e6:.0f} MB, most of it by {most}")
    earlier = ""  # the error of an ordinary cell since the last test
    for cell in code:
        error = _error(cell)
        if not cell.metadata.get("nbgrader", {}).get("grade"):
            earlier = error or earlier
            continue
        if "No module named 'course_utils" in error:
            raise Ungradable(submitted, NO_COURSE)
        if error:
            yield f"{error} (before it: {earlier})" if earlier and "NameError" in error else error
        earlier = ""


def title(grade_id: str) -> str:
    """The exercise's id where a test cell is one of ours: 10.1 for 10-1-test."""
    return re.sub(r"^(\w+)-(\w+)-test$", r"\1.\2", grade_id)


def _answers_no_more(code: Sequence[NotebookNode]) -> bool:
    """Whether the last two cells took too long and could not even be interrupted."""
    last = [{output.get("ename") for output in cell.outputs} for cell in code[-2:]]
    return len(last) == 2 and all("CellTimeoutError" in names and "KeyboardInterrupt" not in names for names in last)


def _error(cell: NotebookNode) -> str:
    """What a cell's error says; empty where it has none."""
    errors = [output for output in cell.outputs if output.output_type == "error"]
    if any(error.ename == "CellTimeoutError" for error in errors):
        return f"{_label(cell)}: took too long, an endless loop?"
    if not errors:
        return ""
    first = errors[0]
    return first.evalue if first.ename == "NotRight" else f"{_label(cell)}: {first.ename} {first.evalue}".rstrip()


def _label(cell: NotebookNode) -> str:
    grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
    return title(grade_id) if grade_id.endswith("-test") else f"cell {grade_id or cell.get('id', 'without a name')}"
