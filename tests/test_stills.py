"""What a saved notebook keeps of live controls."""

import copy

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.delivery.stills import VIEW, before_saving, keep_stills

PNG, TEXT, HTML = "image/png", "text/plain", "text/html"


def notebook(*bundles, **metadata):
    outputs = [nbformat.v4.new_output("display_data", dict.fromkeys(bundle, "x")) for bundle in bundles]
    cells = [nbformat.v4.new_markdown_cell("# Title"), nbformat.v4.new_code_cell("1", outputs=outputs)]
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


@given(st.lists(st.sets(st.sampled_from([VIEW, PNG, TEXT, HTML]), min_size=1)))
def test_a_view_goes_where_something_else_can_be_seen_and_nothing_else_goes(bundles):
    made = notebook(*bundles, widgets={"state": 1}, course={"chapter": "10"})
    keep_stills(made)
    for bundle, output in zip(bundles, made.cells[1].outputs, strict=True):
        assert set(output.data) == (bundle - {VIEW} or {VIEW})
    assert made.metadata == {"course": {"chapter": "10"}}


def test_the_server_saves_a_notebook_without_views():
    made = notebook([VIEW, PNG, TEXT])
    before_saving({"type": "notebook", "content": made}, path="10.ipynb", contents_manager=None)
    assert set(made.cells[1].outputs[0].data) == {PNG, TEXT}


@pytest.mark.parametrize(
    "model",
    [
        {"type": "file", "content": "a text", "format": "text"},
        {"type": "directory", "content": None},
        {"type": "notebook", "content": None},
        {"type": "notebook", "content": {"nbformat": 3, "worksheets": []}},
    ],
)
def test_the_server_saves_everything_else_as_it_is(model):
    before = copy.deepcopy(model)
    before_saving(model)
    assert model == before
