"""The guide for instructors: its commands, as they stand, lead from picking exercises to a table of marks."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from notebook_reading import LINK

from course_utils.places import NOTEBOOKS, ROOT

GUIDE = (NOTEBOOKS / "guide_instructors.md").read_text(encoding="utf-8")
QUOTED = [phrase for row in re.findall(r"^\| (\S[^|]+) \| ", GUIDE, re.M)[1:] for phrase in row.split("; ")]
BLOCKS = re.findall(r"^```bash\n(.*?)^```", GUIDE, re.M | re.S)


@pytest.fixture(scope="module")
def followed(tmp_path_factory) -> tuple[Path, list[str]]:
    """A home in which somebody typed all the guide's commands, and what each block of them printed."""
    home = tmp_path_factory.mktemp("home")
    clone = home / "clone"
    clone.mkdir()
    for name, target in (("course_utils", ROOT / "course_utils"), (".venv", Path(sys.prefix))):
        (clone / name).symlink_to(target, target_is_directory=True)
    own = {"HOME": str(home), "COURSE_VENV": sys.prefix, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    script = "set -e\n" + "\necho ---- next block\n".join(BLOCKS)
    settings = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"} | own | {"PATH": path}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=clone,
        env=settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout
    return home / "teaching", done.stdout.split("---- next block\n")


@pytest.mark.slow
def test_the_commands_lead_to_marks(followed):
    folder, said = followed
    with (folder / "week3_marks.csv").open(encoding="utf-8-sig", newline="") as file:
        marks = {row["student"]: (row["status"], row["mark"], row["of"]) for row in csv.DictReader(file)}
    assert marks == {"Nguyễn Ánh": ("graded", "10.0", "10.0"), "ben": ("graded", "0.0", "10.0")}
    (rehearsal,) = [text for text in said if "key: 10 of 10" in text]
    assert "blank: 0 of 10. 10.1 Take a sum apart: not attempted" in rehearsal
    with (folder / "nbgrader_marks.csv").open(encoding="utf-8", newline="") as file:
        assert {row["student_id"]: row["score"] for row in csv.DictReader(file)} == {"Nguyễn Ánh": "10.0", "ben": "0.0"}


@pytest.mark.slow
def test_the_commands_lead_to_feedback_and_to_the_exchange(followed):
    folder, _ = followed
    for student in ("Nguyễn Ánh", "ben"):
        page = (folder / "feedback" / student / "week3" / "week3.html").read_text(encoding="utf-8")
        assert "HIDDEN" not in page and "10.1 Take a sum apart" in page
    assert (folder.parent / "exchange" / "embeddings" / "outbound" / "week3" / "week3.ipynb").exists()


@pytest.mark.parametrize("phrase", QUOTED)
def test_the_guide_quotes_what_grade_says(phrase):
    folder = ROOT / "course_utils" / "delivery"
    says = "".join((folder / f"{name}.py").read_text(encoding="utf-8") for name in ("marks", "outcomes", "submissions"))
    assert phrase.replace("week3.ipynb", "{path.name}") in says


def test_links_lead_somewhere():
    for target in LINK.findall(GUIDE):
        assert target.startswith("https://") or (NOTEBOOKS / target).exists(), target
    assert "notebooks/guide_instructors.md" in (ROOT / "README.md").read_text(encoding="utf-8")
