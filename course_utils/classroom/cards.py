"""The look of what the classroom says: one card, as HTML for the page and as plain text for everyone else.

The plain text is what nbval compares and what a screen reader or a terminal shows, so it holds all that the card says.
Right and wrong are told by a word and a mark; the colour of the edge only repeats them.
"""

from collections.abc import Sequence
from html import escape

from IPython.display import display

EDGES = {"good": "#009E73", "bad": "#D55E00", "open": "#56B4E9", "note": "#999999"}  # Okabe-Ito
MARKS = {"good": "✓", "bad": "✗", "open": "○", "note": "•"}
STYLE = (
    "border-left:6px solid {edge};padding:.5em 1em;margin:.3em 0;max-width:48em;line-height:1.45;"
    "background:var(--jp-layout-color1,#fff);color:var(--jp-ui-font-color1,#111)"
)


def bundle(kind: str, title: str, lines: Sequence[str], table: Sequence[Sequence[str]] = (), more: str = "") -> dict:
    """A card's mimebundle.

    kind: one of good, bad, open, note. title, lines and the cells of table (its first row is the head) are plain text
    and get escaped here. more: HTML that follows on the page only, such as hints behind a disclosure triangle.
    """
    body = "".join(f"<div>{escape(line)}</div>" for line in lines)
    head = f"<div><b>{MARKS[kind]} {escape(title)}</b></div>"
    style = STYLE.format(edge=EDGES[kind])
    plain = [f"{MARKS[kind]} {title}", *(f"  {line}" for line in lines), *_plain_rows(table)]
    return {
        "text/html": f'<div role="note" style="{style}">{head}{body}{_html_rows(table)}{more}</div>',
        "text/plain": "\n".join(plain),
    }


def card(kind: str, title: str, lines: Sequence[str], table: Sequence[Sequence[str]] = (), more: str = "") -> None:
    """Show a card under the cell."""
    display(bundle(kind, title, lines, table, more), raw=True)


def _html_rows(table: Sequence[Sequence[str]]) -> str:
    if not table:
        return ""
    head, *rows = table
    cells = "".join(f'<th scope="col" style="text-align:left;padding-right:1.5em">{escape(cell)}</th>' for cell in head)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:left;padding-right:1.5em">{escape(cell)}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def _plain_rows(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
