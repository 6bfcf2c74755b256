"""The look of what the classroom says: one card, as HTML for the page and as plain text for everyone else.

The plain text is what nbval compares and what a screen reader or a terminal shows, so it holds all that the card says.
Right and wrong are told by a word and a mark; the colour of the edge only repeats them.
"""

from html import escape

from IPython.display import display

EDGES = {"good": "#009E73", "bad": "#D55E00", "open": "#56B4E9", "note": "#999999"}  # Okabe-Ito
MARKS = {"good": "✓", "bad": "✗", "open": "○", "note": "•"}
STYLE = (
    "border-left:6px solid {edge};padding:.5em 1em;margin:.3em 0;max-width:48em;line-height:1.45;"
    "background:var(--jp-layout-color1,#fff);color:var(--jp-ui-font-color1,#111)"
)


def bundle(kind: str, title: str, lines: list[str], more: str = "") -> dict[str, str]:
    """A card's mimebundle.

    kind: one of good, bad, open, note. title and lines are plain text and get escaped here. more: HTML that follows
    the lines on the page only, such as hints behind a disclosure triangle.
    """
    body = "".join(f"<div>{escape(line)}</div>" for line in lines)
    head = f"<div><b>{MARKS[kind]} {escape(title)}</b></div>"
    return {
        "text/html": f'<div role="note" style="{STYLE.format(edge=EDGES[kind])}">{head}{body}{more}</div>',
        "text/plain": "\n".join([f"{MARKS[kind]} {title}", *(f"  {line}" for line in lines)]),
    }


def card(kind: str, title: str, lines: list[str], more: str = "") -> None:
    """Show a card under the cell."""
    display(bundle(kind, title, lines, more), raw=True)
