"""The look of what the classroom says: one card, as HTML for the page and as plain text for everyone else.

The plain text is what nbval compares and what a terminal shows, so it holds all that the card says. Right and wrong
are told by a word and a mark; the colour of the edge only repeats them.
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

CELL = '<{0} style="text-align:left;padding-right:1.5em">{1}</{0}>'
Texts = Sequence[str]


class Card:
    """One card. kind is one of good, bad, open, note.

    title, lines and the cells of table (its first row is the head) are plain text and get escaped here. more is HTML
    that follows on the page only, such as hints behind a disclosure triangle.
    """

    def __init__(self, kind: str, title: str, lines: Texts = (), table: Sequence[Texts] = (), more: str = ""):
        plain = [f"{MARKS[kind]} {title}", *(f"  {line}" for line in lines), *_plain_rows(table)]
        body = "".join(f"<div>{escape(line)}</div>" for line in lines) + _html_rows(table) + more
        head = f"<div><b>{MARKS[kind]} {escape(title)}</b></div>"
        self.text = "\n".join(plain)
        self.html = f'<div role="note" style="{STYLE.format(edge=EDGES[kind])}">{head}{body}</div>'

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.text}


def card(kind: str, title: str, lines: Texts = (), table: Sequence[Texts] = (), more: str = "") -> None:
    """Show a Card under the cell."""
    display(Card(kind, title, lines, table, more))


def _html_rows(table: Sequence[Texts]) -> str:
    if not table:
        return ""
    head, *body = table
    rows = "".join(f"<tr>{_html_cells('td', row)}</tr>" for row in body)
    return f"<table><thead><tr>{_html_cells('th', head)}</tr></thead><tbody>{rows}</tbody></table>"


def _html_cells(tag: str, row: Texts) -> str:
    return "".join(CELL.format(tag, escape(cell)) for cell in row)


def _plain_rows(table: Sequence[Texts]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    padded = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in table)
    return ["  " + "  ".join(row).rstrip() for row in padded]
