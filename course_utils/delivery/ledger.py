"""The ledger on the screen: each claim with its verdict and what was measured; the register's rows."""

import json
import shutil
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from course_utils.classroom.claims import Claim, load_claims, number
from course_utils.places import DATA

LEAST_STATEMENT = 30  # columns


def claims_table(folder: Path = DATA, width: int | None = None) -> str:
    """All claims: chapter, id, verdict, statement, and the recorded measurement where there is one."""
    claims = load_claims(folder / "claims")
    if not claims:
        return "There are no claims yet."
    measured = {chapter: _recorded(folder, chapter) for chapter in sorted({one.chapter for one in claims.values()})}
    lines = [
        (one.chapter, one.id, one.verdict, one.statement, _measurement(measured[one.chapter].get(one.id)))
        for one in claims.values()
    ]
    count = Counter(one.verdict for one in claims.values())
    total = ", ".join(f"{verdict}: {times}" for verdict, times in sorted(count.items()))
    table = _table(("", "claim", "verdict", "statement", "measured"), lines, 3, width)
    return f"{table}\n{len(claims)} claims ({total})"


def rows_table(folder: Path = DATA, width: int | None = None) -> str:
    """The register's rows with what became of each: its claims, why it was left out, or open."""
    register = _rows(folder / "register.toml")
    left_out = {row["id"]: row["reason"] for row in _rows(folder / "left_out.toml")}
    covering = _covering(load_claims(folder / "claims").values())
    lines, count = [], Counter()
    for row in register:
        state, detail = _state(row["id"], covering, left_out)
        count[state] += 1
        lines.append((row["id"], state, row["class"], row["section"], detail))
    total = ", ".join(f"{count[state]} {state}" for state in ("covered", "left out", "open"))
    table = _table(("row", "state", "class", "section", "by"), lines, 3, width)
    return f"{table}\n{len(register)} rows: {total}"


def _state(row: str, covering: dict[str, list[str]], left_out: dict[str, str]) -> tuple[str, str]:
    if row in covering:
        return "covered", ", ".join(covering[row])
    return ("left out", left_out[row]) if row in left_out else ("open", "")


def _covering(claims: Iterable[Claim]) -> dict[str, list[str]]:
    """For each row the claims that cover it, as chapter:id."""
    covering: dict[str, list[str]] = {}
    for claim in claims:
        for row in claim.rows:
            covering.setdefault(row, []).append(f"{claim.chapter}:{claim.id}")
    return covering


def _rows(path: Path) -> list[dict[str, Any]]:
    return tomllib.loads(path.read_text(encoding="utf-8")).get("row", []) if path.exists() else []


def _recorded(folder: Path, chapter: str) -> dict[str, Any]:
    path = folder / "measured" / f"{chapter}.json"
    return json.loads(path.read_text(encoding="utf-8"))["claims"] if path.exists() else {}


def _measurement(entry: dict[str, Any] | None) -> str:
    """A recorded claim's values on one line; of a volatile claim its bound."""
    if entry is None:
        return "not yet"
    values = {name: number(value) for name, value in entry.get("values", {}).items()} or entry.get("bound", {})
    return (
        next(iter(values.values()))
        if len(values) == 1
        else ", ".join(f"{name} {text}" for name, text in values.items())
    )


def _table(head: Sequence[str], lines: Sequence[Sequence[str]], wrapped: int, width: int | None) -> str:
    """Columns as wide as their widest cell; column `wrapped` and the last share what the screen has left."""
    width = width or shutil.get_terminal_size((110, 24)).columns
    widths = [max(len(line[column]) for line in [head, *lines]) for column in range(len(head))]
    fixed = sum(size + 2 for column, size in enumerate(widths[:-1]) if column != wrapped)
    room = max(width - fixed - 2, 2 * LEAST_STATEMENT)
    widths[-1] = min(widths[-1], max(LEAST_STATEMENT, room - widths[wrapped]))
    widths[wrapped] = min(widths[wrapped], room - widths[-1])
    return "\n".join(_row(line, widths) for line in [head, ["-" * size for size in widths], *lines])


def _row(line: Sequence[str], widths: Sequence[int]) -> str:
    cells = [textwrap.wrap(text, size) or [""] for text, size in zip(line, widths, strict=True)]
    height = max(map(len, cells))
    padded = [cell + [""] * (height - len(cell)) for cell in cells]
    return "\n".join(
        "  ".join(part.ljust(size) for part, size in zip(parts, widths, strict=True)).rstrip()
        for parts in zip(*padded, strict=True)
    )
