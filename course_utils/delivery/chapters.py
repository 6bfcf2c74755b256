"""The chapters that there are, by their two digits. Standard library only."""

from pathlib import Path

from course_utils.delivery import CourseError
from course_utils.places import NOTEBOOKS


def chapters(folder: Path = NOTEBOOKS) -> dict[str, Path]:
    """The notebooks by chapter, in order: {"00": .../00_start_here.ipynb, ...}."""
    return {path.name[:2]: path for path in sorted(folder.glob("[0-9][0-9]_*.ipynb"))}


def find(name: str, folder: Path = NOTEBOOKS) -> Path:
    """The notebook of a chapter given as "10" or "7". Raises CourseError, naming the chapters there are."""
    there = chapters(folder)
    found = there.get(name.zfill(2))
    if found is None:
        raise CourseError(f"There is no chapter {name!r}: choose one of {', '.join(there) or '(none here yet)'}.")
    return found
