"""A chapter with all its exercises solved: every check passes, and what it measures is what data/measured says."""

import ast
import json

import nbformat
import pytest
from notebook_reading import NOTEBOOKS, code_cells, read, tagged

from course_utils import exercises
from course_utils.classroom.claims import load_claims
from course_utils.classroom.exercises import solution_source
from course_utils.delivery.running import execute
from course_utils.places import DATA

CLAIMS = load_claims()


def solved(path):
    """The notebook with each exercise's stub replaced by the reference solution."""
    notebook = read(path)
    for name, cell in tagged(notebook, "exercise").items():
        exercise = exercises.find(name)
        stub = ast.parse(cell.source).body[0]
        is_value = exercise.cases is None
        cell.source = f"{stub.targets[0].id} = {exercise.solution!r}" if is_value else solution_source(exercise)
    return notebook


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_all_solved_every_check_passes_and_the_ledger_is_true(path, tmp_path):
    copy = tmp_path / path.name
    nbformat.write(solved(path), copy)
    run = execute(copy)
    assert not run.error
    for name, cell in tagged(run.notebook, "check").items():
        (output,) = cell.outputs
        assert output.data["text/plain"].startswith(f"✓ {name}"), output.data["text/plain"]
    assert set(run.progress["exercises"].values()) == {"right"}
    recorded = json.loads((DATA / "measured" / f"{path.name[:2]}.json").read_text(encoding="utf-8"))["claims"]
    settled = run.progress["settled"]
    assert set(recorded) == set(settled) == {claim.id for claim in CLAIMS.values() if claim.chapter == path.name[:2]}
    for name, claim in CLAIMS.items():
        if name in settled and not claim.volatile:
            for value, expected in claim.expect.items():
                fresh, stored = settled[name]["values"][value], recorded[name]["values"][value]
                assert expected.shown(fresh) == expected.shown(stored), f"{name}, {value}"


def test_no_notebook_without_code():
    assert all(len(code_cells(read(path))) > 5 for path in NOTEBOOKS)
