"""Chapters that need no PyTorch run where it can't be imported; what does need it says so in one line and goes on."""

import os

import pytest

from course_utils.classroom.claims import load_claims
from course_utils.delivery.chapters import chapters
from course_utils.delivery.running import execute

BLOCK = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError("PyTorch is blocked in this test", name=name)
sys.meta_path.insert(0, NoTorch())
"""
WITH_TORCH = {
    "10": set(),
    "12": set(),
    "15": {id for id, claim in load_claims().items() if "smollm2" in id or "mask" in id},
}


@pytest.fixture
def no_torch(tmp_path, monkeypatch):
    """Every Python that starts now refuses to import torch."""
    (tmp_path / "sitecustomize.py").write_text(BLOCK, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))


@pytest.mark.slow
@pytest.mark.parametrize("number", WITH_TORCH)
def test_the_chapter_runs_where_torch_cannot_be_imported(number, no_torch):
    run = execute(chapters()[number])
    assert run.error == ""
    own = {id for id, claim in load_claims().items() if claim.chapter == number}
    assert set(run.progress["settled"]) == own - WITH_TORCH[number]
    said = [output.text for cell in run.notebook.cells for output in cell.get("outputs", []) if "text" in output]
    lines = [line for text in said for line in text.splitlines() if "PyTorch is blocked" in line]
    assert len(lines) == bool(own & WITH_TORCH[number])
