"""Keeping what a run gave: outputs in the notebook, measured values in data/measured."""

import hashlib
import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from course_utils.classroom.claims import Claim, load_claims
from course_utils.delivery import CourseError
from course_utils.delivery.stills import keep_stills
from course_utils.places import DATA, replacing

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def source_hash(notebook: Mapping[str, Any]) -> str:
    """sha256 of the code cells' sources, each ended by a newline: tells if the code that is there was run."""
    code = ("".join(cell["source"]) + "\n" for cell in notebook["cells"] if cell["cell_type"] == "code")
    return hashlib.sha256("".join(code).encode()).hexdigest()


def save(notebook: NotebookNode, path: Path) -> None:
    """Write a notebook that was run, with its source_hash in metadata.course.ran. Same run, same bytes."""
    tidy(notebook)
    notebook.metadata["course"] = {**notebook.metadata.get("course", {}), "ran": source_hash(notebook)}
    nbformat.validate(notebook)
    _replace(path, nbformat.writes(notebook).rstrip("\n") + "\n")


def tidy(notebook: NotebookNode) -> None:
    """Take out what differs from run to run: widgets' ids and state, timings, the version of Python."""
    keep_stills(notebook)
    notebook.metadata["kernelspec"] = KERNEL
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code" and not cell.source.strip():  # was not run
            cell.execution_count, cell.outputs = None, []


def record(chapter: str, settled: Mapping[str, Any], versions: Mapping[str, str], folder: Path = DATA) -> Path:
    """Write what a strict run measured to data/measured/NN.json. Returns the file.

    A volatile claim keeps its bound in place of its values. Raises CourseError if a claim was not settled.
    """
    claims = {name: one for name, one in load_claims(folder / "claims").items() if one.chapter == chapter}
    unsettled = [name for name in claims if name not in settled]
    if unsettled:
        raise CourseError(f"not recorded: the chapter does not settle {', '.join(unsettled)}")
    content = {
        "chapter": chapter,
        "claims": {name: _measured(claim, settled[name]["values"]) for name, claim in claims.items()},
        "date": date.today().isoformat(),
        "versions": dict(versions),
    }
    path = folder / "measured" / f"{chapter}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(path, json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n")
    return path


def _measured(claim: Claim, values: Mapping[str, float]) -> dict[str, Any]:
    if claim.volatile:
        entry = {"bound": {name: str(bound) for name, bound in claim.expect.items()}}
    else:
        entry = {"values": dict(values)}
    return entry if claim.seed is None else {**entry, "seed": claim.seed}


def _replace(path: Path, text: str) -> None:
    with replacing(path) as new:
        new.write_text(text, encoding="utf-8", newline="\n")
