"""Where the course keeps its things. The package runs from its own clone: notebooks and data lie beside it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data"
NOTEBOOKS = ROOT / "notebooks"
