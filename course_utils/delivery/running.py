"""Running chapters without a browser, in the kernel of this interpreter, claims strict, progress empty."""

import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from ipykernel.kernelspec import RESOURCES, make_ipkernel_cmd
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from course_utils.delivery import CourseError, keeping
from course_utils.delivery.chapters import chapters, find
from course_utils.places import NOTEBOOKS

CELL_SECONDS = 600
QUIET = ["--log-level=40"]  # errors: the kernel warns of its unencrypted channel on every start
ASK = "from course_utils.delivery.measure import report\nprint(report())"


class ThisPython(AsyncKernelManager):
    """A kernel of the interpreter that runs this, whatever kernels are registered on the machine."""

    @property
    def kernel_spec(self) -> KernelSpec:
        """How to start it."""
        return KernelSpec(argv=make_ipkernel_cmd(extra_arguments=QUIET), resource_dir=RESOURCES, language="python")


@dataclass
class Run:
    """What one run of a notebook did. notebook has the outputs; used has cpu (s), peak (bytes), versions."""

    path: Path
    notebook: NotebookNode
    cells: int = 0
    wall: float = 0.0  # seconds, without the kernel's start
    used: dict[str, Any] = field(default_factory=dict)
    progress: dict[str, Any] = field(default_factory=dict)  # the chapter's, as the run left it
    error: str = ""  # the cell that failed, and how

    def __str__(self) -> str:
        size = f"{self.cells:3} cells  {self.wall:6.1f} s wall"
        if self.used:
            size += f"  {self.used['cpu']:6.1f} s CPU  {self.used['peak'] / 1e6:6.0f} MB peak"
        return f"{self.path.stem:32} {size}" + (f"\n  failed: {self.error}" if self.error else "")


def run_chapters(names: Sequence[str], save: bool = False, record: bool = False, folder: Path = NOTEBOOKS) -> int:
    """Run the folder's chapters (all, if none is named), print a line for each. Returns 1 if one failed, else 0.

    A failure does not keep the others from running. Raises CourseError for a chapter that there isn't.
    """
    failures = 0
    for path in [find(name, folder) for name in names] or list(chapters(folder).values()):
        run = execute(path)
        if not run.error:
            run.error = _keep(run, save, record)
        failures += bool(run.error)
        print(run, flush=True)
    return 1 if failures else 0


def execute(path: Path, cwd: Path = NOTEBOOKS) -> Run:
    """Run a notebook from top to bottom in a new kernel that works in cwd. A failure is told in its error."""
    run = Run(path, nbformat.read(path, as_version=4))
    with tempfile.TemporaryDirectory(prefix="course-progress-") as folder:
        settings = {"COURSE_STRICT": "1", "COURSE_PROGRESS": folder}
        with _kernel(run.notebook, cwd, settings) as client:
            run.error = _run_cells(client, run)
            if "died" not in run.error:
                run.used = _ask(client)
        kept = Path(folder) / f"{path.name[:2]}.json"
        run.progress = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    return run


def _keep(run: Run, save: bool, record: bool) -> str:
    """Save and record as asked. Returns why that is not possible, or an empty text."""
    try:
        if record:
            keeping.record(run.path.name[:2], run.progress.get("settled", {}), run.used["versions"])
        if save:
            keeping.save(run.notebook, run.path)
    except CourseError as error:
        return str(error)
    return ""


@contextmanager
def _kernel(notebook: NotebookNode, cwd: Path, settings: Mapping[str, str]) -> Iterator[NotebookClient]:
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_manager_class=ThisPython,
        store_widget_state=False,
        record_timing=False,
        coalesce_streams=True,
    )
    with client.setup_kernel(cwd=str(cwd), env=os.environ | settings):
        yield client


def _run_cells(client: NotebookClient, run: Run) -> str:
    """Run the cells, counting them and their time in run. Returns what failed, or an empty text."""
    start = time.perf_counter()
    try:
        for index, cell in enumerate(run.notebook.cells):
            if cell.cell_type == "code" and cell.source.strip():
                run.cells += 1
                client.execute_cell(cell, index, execution_count=run.cells)
    except CellExecutionError as error:
        return f"code cell {run.cells} (cell {index + 1}): {error.ename}: {error.evalue}"
    except CellTimeoutError:
        return f"code cell {run.cells} (cell {index + 1}) took more than {CELL_SECONDS} s"
    except DeadKernelError:
        return f"code cell {run.cells} (cell {index + 1}): the kernel died (out of memory?)"
    finally:
        run.wall = time.perf_counter() - start
    return ""


def _ask(client: NotebookClient) -> dict[str, Any]:
    """Ask the kernel what it used, through a cell that is gone again afterwards."""
    cells = client.nb.cells
    cells.append(nbformat.v4.new_code_cell(ASK))
    try:
        answer = client.execute_cell(cells[-1], len(cells) - 1)
    finally:
        cells.pop()
    return json.loads("".join(output.text for output in answer.outputs if output.get("name") == "stdout"))
