"""Where the course keeps its things, and how it writes there.

The package runs from its own clone: notebooks and data lie beside it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data"
NOTEBOOKS = ROOT / "notebooks"


def cache_folder() -> Path:
    """Where files that can be made again live: the folder that COURSE_CACHE names, else the user's cache folder."""
    import platformdirs

    named = os.environ.get("COURSE_CACHE")
    return Path(named).expanduser() if named else platformdirs.user_cache_path("course_utils")


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """A neighbour of the file, to write into. When the block ends well, it takes the file's place in one step.

    So a reader, or a computer that stops, finds the old content or the new one, never a part. Raises OSError where
    the folder can't be written.
    """
    new = file.with_name(f"{file.name}.{os.getpid()}.new")
    try:
        yield new
        with new.open("rb+") as written:
            os.fsync(written.fileno())
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)
