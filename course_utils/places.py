"""Where the course keeps its things. The package runs from its own clone: notebooks and data lie beside it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data"
NOTEBOOKS = ROOT / "notebooks"


def data_file(*parts: str) -> Path:
    """The path of a file below data/. Raises FileNotFoundError, with what to do, where it is missing."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        raise FileNotFoundError(
            f"{path.name} is missing from {path.parent}: the package works from a full clone of the course "
            "(pip install -e . in the clone, not a copy of course_utils alone)"
        )
    return path
