"""Headless runs: real kernels on small notebooks written for the occasion."""

import json
from pathlib import Path

import nbformat
import pytest

from course_utils.delivery import CourseError, keeping
from course_utils.delivery.running import Run, execute, run_chapters
from course_utils.places import NOTEBOOKS, ROOT

CLAIMS = """
[[claim]]
id = "two-and-two"
statement = "Two and two are four."
kind = "identity"
verdict = "holds"
source = "counting"
seed = 3
[claim.expect.sum]
equals = 4
why = "integers"

[[claim]]
id = "quick"
statement = "It takes no time."
kind = "experiment"
verdict = "holds"
source = "a clock"
volatile = true
[claim.expect.seconds]
at_most = 5
why = "any machine"
"""
SETTLED = {
    "two-and-two": {"values": {"sum": 4.0}, "within": True},
    "quick": {"values": {"seconds": 0.12}, "within": True},
}


def notebook(folder: Path, *sources: str, name: str = "97_small.ipynb") -> Path:
    """Write a notebook whose cells are the sources; one that begins with # is text."""
    cells = [
        nbformat.v4.new_markdown_cell(source, id=f"text-{number}")
        if source.startswith("# ")
        else nbformat.v4.new_code_cell(source, id=f"code-{number}")
        for number, source in enumerate(sources)
    ]
    path = folder / name
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> Run:
    """One run that uses known amounts of time and memory, and tells where and how it ran."""
    path = notebook(
        tmp_path_factory.mktemp("measured"),
        "# A title",
        "import os, sys, time, pathlib\nfrom course_utils.classroom import progress",
        "block = b'x' * 300_000_000\nstart = time.process_time()\nwhile time.process_time() - start < 1: pass",
        "print(sys.prefix)\nprint(pathlib.Path.cwd())\nprint(os.environ['COURSE_STRICT'], progress.read('97'))",
        "ok = progress.note('97', 'settled', 'two-and-two', {'values': {'sum': 4.0}, 'within': True})",
        "",
    )
    return execute(path)


def test_seconds_and_peak_memory_are_the_kernels(measured):
    assert (measured.error, measured.cells) == ("", 4)
    assert 1 <= measured.used["cpu"] < 10 and measured.wall >= 1
    assert 300e6 < measured.used["peak"] < 600e6
    assert set(measured.used["versions"]) >= {"python"} and "torch" not in measured.used["versions"]
    assert "4 cells" in str(measured) and "MB peak" in str(measured)


def test_a_run_is_strict_starts_without_progress_and_works_in_the_notebooks_folder(measured):
    import sys

    prefix, folder, rest = measured.notebook.cells[3].outputs[0].text.splitlines()
    assert (prefix, folder) == (sys.prefix, str(NOTEBOOKS))
    assert rest == "1 {'predictions': {}, 'exercises': {}, 'settled': {}}"
    assert measured.progress["settled"] == {"two-and-two": SETTLED["two-and-two"]}
    assert "report()" not in json.dumps(measured.notebook), "the cell that asks is not kept"


def test_an_error_names_notebook_and_cell_and_the_other_chapters_run(tmp_path, capsys):
    wrong = notebook(tmp_path, "# A title", "x = 1", "1 / (x - 1)", "x = 2", name="96_wrong.ipynb")
    right = notebook(tmp_path, "x = 1")
    assert run_chapters([], save=True, folder=tmp_path) == 1
    told = capsys.readouterr().out
    assert "96_wrong" in told and "failed: code cell 2 (cell 3): ZeroDivisionError: division by zero" in told
    assert "97_small" in told and told.count("failed") == 1
    assert nbformat.read(wrong, 4).cells[1].outputs == [] == nbformat.read(wrong, 4).cells[2].outputs
    assert "ran" not in nbformat.read(wrong, 4).metadata.get("course", {})
    assert nbformat.read(right, 4).metadata.course.ran


def test_a_kernel_that_dies_is_told(tmp_path, capsys):
    notebook(tmp_path, "import os\nos._exit(3)")
    assert run_chapters(["97"], folder=tmp_path) == 1
    assert "code cell 1 (cell 1): the kernel died" in capsys.readouterr().out


def test_another_kernel_of_the_same_name_is_not_used(tmp_path, monkeypatch):
    spec = tmp_path / "kernels" / "python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text('{"argv": ["no-such-program"], "display_name": "wrong", "language": "python"}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    assert execute(notebook(tmp_path, "x = 1")).error == ""


def test_saving_gives_the_same_bytes_each_time(tmp_path):
    path = notebook(
        tmp_path,
        "# A title",
        "import ipywidgets\nipywidgets.IntSlider(4)",
        "",
        "print('đá')\nprint('stone')",
        "{'b': 1}",
    )
    before = nbformat.read(path, 4)
    assert run_chapters(["97"], save=True, folder=tmp_path) == 0
    first = path.read_bytes()
    assert run_chapters(["97"], save=True, folder=tmp_path) == 0
    assert path.read_bytes() == first
    assert first.endswith(b"}\n") and b"\r" not in first and "đá".encode() in first
    after = nbformat.read(path, 4)
    assert [cell.id for cell in after.cells] == [cell.id for cell in before.cells]
    assert [cell.get("execution_count") for cell in after.cells] == [None, 1, None, 2, 3]
    assert set(after.metadata) == {"course", "kernelspec", "language_info"}
    assert after.metadata.course.ran == keeping.source_hash(before)
    assert list(after.cells[1].outputs[0].data) == ["text/plain"]
    assert list(tmp_path.iterdir()) == [path]


def test_the_hash_is_that_of_the_code():
    cells = [nbformat.v4.new_markdown_cell("text"), nbformat.v4.new_code_cell("x = 1\ny = 2")]
    book = nbformat.v4.new_notebook(cells=cells)
    # printf 'x = 1\ny = 2\n' | sha256sum
    assert keeping.source_hash(book) == "8353afe579a16d27abc038055bf713459ba6ef418c65b143b526a09dd529e500"
    as_stored = json.loads(nbformat.writes(book))
    assert as_stored["cells"][1]["source"] == ["x = 1\n", "y = 2"]
    assert keeping.source_hash(as_stored) == keeping.source_hash(book)
    cells[0].source = "other text"
    assert keeping.source_hash(as_stored) == keeping.source_hash(book)
    cells[1].source = "x = 1\ny = 3"
    assert keeping.source_hash(as_stored) != keeping.source_hash(book)


@pytest.fixture
def data(tmp_path) -> Path:
    """A data folder with two claims of chapter 97."""
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "97.toml").write_text(CLAIMS)
    return tmp_path


def test_recording_keeps_values_seeds_and_versions_and_of_volatile_claims_the_bound(data):
    path = keeping.record("97", SETTLED, {"python": "3.11.7"}, folder=data)
    assert path == data / "measured" / "97.json"
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert kept.pop("date").count("-") == 2
    assert kept == {
        "chapter": "97",
        "claims": {"quick": {"bound": {"seconds": "at most 5"}}, "two-and-two": {"seed": 3, "values": {"sum": 4.0}}},
        "versions": {"python": "3.11.7"},
    }
    assert path.read_text(encoding="utf-8").endswith("}\n")


def test_a_chapter_that_leaves_a_claim_unsettled_is_not_recorded(data):
    with pytest.raises(CourseError, match="does not settle quick"):
        keeping.record("97", {"two-and-two": SETTLED["two-and-two"]}, {}, folder=data)
    assert not (data / "measured").exists()


def test_stored_measurements_belong_to_claims_that_there_are():
    from course_utils.classroom.claims import load_claims

    for path in sorted((ROOT / "data" / "measured").glob("*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        here = {name: claim for name, claim in load_claims().items() if claim.chapter == path.stem}
        assert set(kept["claims"]) == set(here), path.name
        for name, entry in kept["claims"].items():
            assert ("bound" in entry) == here[name].volatile, name
            assert set(entry.get("values") or entry["bound"]) == set(here[name].expect), name
