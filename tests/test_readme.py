"""The README says what is true: its map is the course's, its figure a chapter's own, its commands and links exist."""

import base64
import re

from notebook_reading import LINK, NOTEBOOKS, code_cells, read

from course_utils.classroom.start import stops
from course_utils.delivery import cli
from course_utils.places import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_map_is_that_of_the_course():
    for stop in stops():
        name = f"[{stop.title}](notebooks/{stop.notebook.name})" if stop.notebook else stop.title
        ending = "" if stop.notebook else " *(to come)*"
        assert f"| {stop.number} | {name} | {stop.about}{ending} |" in README


def test_links_lead_somewhere():
    for target in LINK.findall(README):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_the_figure_is_one_that_a_chapter_shows():
    (name,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    outputs = [output for path in NOTEBOOKS for cell in code_cells(read(path)) for output in cell.outputs]
    pictures = [output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    assert base64.b64encode((ROOT / name).read_bytes()).decode() in [picture.strip() for picture in pictures]


def test_every_command_that_it_names_is_known():
    verbs = set(re.findall(r"python3 -m course_utils (\w+)", README))
    assert verbs >= {"lab", "test", "claims"}
    for verb in verbs:
        assert verb in cli._parser().format_help()
