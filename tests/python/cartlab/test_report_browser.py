"""The report's page in a real browser: rendered without network, script or complaint, on a wide screen and a
phone, by day and by night.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browser import Browser, find
from PIL import Image
from report_root import SCRIPT_TEXT, realistic_root
from test_report import Reader, page

from cartlab.report import Page, html_page
from cartlab.report.markup import el

WIDTH_PROBE = """<script>
parent.document.documentElement.setAttribute(
    "data-width", document.documentElement.scrollWidth + "/" + innerWidth);
</script>"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    return find(tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page(realistic_root(tmp_path_factory.mktemp("report") / "state"))


@pytest.fixture(scope="module")
def written(facts: Page, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page") / "report.html"
    place.write_text(html_page(facts), encoding="utf-8")
    return place


def test_the_browser_shows_every_candidate_and_has_nothing_to_complain(
    browser: Browser, facts: Page, written: Path
) -> None:
    dom, complaints = browser.dom(written)
    assert complaints == []
    reader = Reader(dom)
    rows = {c.commit[:10]: c for c in facts.candidates}
    for commit, candidate in rows.items():
        assert commit in reader.text and candidate.status in reader.text
    assert reader.of_class("row") == len(rows) == 12
    assert reader.of_class("bar") == 18 and reader.of_class("interval") == 8
    assert reader.of_class("evidence") == sum(c.diagnostics is not None for c in facts.candidates) == 9
    assert SCRIPT_TEXT in reader.texts and "owned" not in dom.partition("</title>")[0]
    assert not {tag for tag, _ in reader.elements} & {"script", "img", "link", "iframe"}
    assert ("meta", "default-src 'none'; style-src 'unsafe-inline'") in [
        (tag, attributes.get("content")) for tag, attributes in reader.elements
    ]


def test_a_page_that_wants_script_or_network_would_be_noticed(
    browser: Browser, written: Path, tmp_path: Path
) -> None:
    for intruder in (
        "<script>console.error('ran')</script>",
        '<img src="http://example.invalid/pixel.png">',
        '<link rel="stylesheet" href="http://example.invalid/a.css">',
    ):
        other = tmp_path / "intruder.html"
        other.write_text(written.read_text(encoding="utf-8").replace("</body>", f"{intruder}</body>"))
        _, complaints = browser.dom(other)
        assert complaints and all("Content Security Policy" in line for line in complaints), intruder


@pytest.mark.parametrize("width", [400, 768, 1200])
def test_nothing_is_wider_than_the_screen(
    browser: Browser, written: Path, tmp_path: Path, width: int
) -> None:
    # The page itself may run no script: this copy may, and tells how wide it became. It lies in a frame,
    # because a window cannot be as narrow as a phone.
    text, count = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", written.read_text("utf-8"))
    assert count == 1
    probed = text.replace("</body>", f"{WIDTH_PROBE}</body>")
    frame = tmp_path / "frame.html"
    frame.write_text(el("iframe", srcdoc=probed, width=str(width), height="800", frameborder="0"))
    dom, _ = browser.dom(frame)
    content, screen = map(int, dom.partition('data-width="')[2].partition('"')[0].split("/"))
    assert screen == width and content <= screen


@pytest.mark.parametrize("dark", [False, True])
def test_it_is_light_by_day_and_dark_by_night(
    browser: Browser, written: Path, tmp_path: Path, dark: bool
) -> None:
    shot = browser.picture(written, tmp_path / "shot.png", 600, 2600, dark)
    with Image.open(shot) as picture:
        seen = picture.convert("RGB")
    assert seen.size == (600, 2600)
    corner = seen.getpixel((2, 2))
    assert corner == ((0x14, 0x16, 0x1A) if dark else (0xF7, 0xF6, 0xF3))
    # The colours of what was kept, and of what was not faster, are drawn.
    colours = {colour for _, colour in seen.getcolors(1 << 24)}
    assert ((0x46, 0xC0, 0x88) if dark else (0x15, 0x79, 0x4A)) in colours
    assert ((0xF0, 0xA3, 0x61) if dark else (0xB3, 0x53, 0x09)) in colours
