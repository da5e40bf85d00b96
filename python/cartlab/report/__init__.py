"""The report on a root: facts in, a page or lines out. Pure: no file, no clock, no environment.

facts: the values; diagnostics: what the blocks show; scale, markup: numbers to places, text that is escaped;
forest, blockcharts: the drawings; sections, page, style: the HTML page; text: Markdown. Gathering the facts
from a ledger is cartlab.pipeline.reporting's.
"""

from cartlab.report.diagnostics import diagnose
from cartlab.report.facts import (
    Accepted,
    Candidate,
    Diagnostics,
    Noise,
    Page,
    Point,
    Round,
    Together,
    kind_of,
)
from cartlab.report.page import html_page
from cartlab.report.text import markdown_lines

__all__ = [
    "Accepted",
    "Candidate",
    "Diagnostics",
    "Noise",
    "Page",
    "Point",
    "Round",
    "Together",
    "diagnose",
    "html_page",
    "kind_of",
    "markdown_lines",
]
