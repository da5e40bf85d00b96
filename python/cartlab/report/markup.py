"""Elements of HTML and SVG as text that is escaped by construction.

Whatever is no Html is text and is escaped, in content and in attributes: nothing that a ledger holds can
become markup. The one way past it is Html(...), which only this package's own constants use.
"""

from __future__ import annotations

import html
import re

# No child, no end tag (HTML Living Standard, section 13.1.2).
VOID = {"meta", "br", "hr"}
# Characters that HTML does not allow, whatever they are escaped to.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")


class Html(str):
    """Markup; what el() gives back."""

    __slots__ = ()


Child = str | float | None
Attribute = str | float | bool | None


def text(value: Child) -> Html:
    """The value as content: Html as it is, None as nothing, all else escaped."""
    if isinstance(value, Html):
        return value
    return Html("" if value is None else html.escape(_CONTROL.sub("\ufffd", str(value)), quote=True))


def el(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """One element. A trailing underscore of an attribute's name is dropped (class_), others become hyphens
    (stroke_width); None and False leave the attribute out, True gives it without a value.
    """
    head = name + "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Html(f"<{head}>")
    return Html(f"<{head}>{''.join(text(child) for child in children)}</{name}>")


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    written = key.rstrip("_").replace("_", "-")
    return f" {written}" if value is True else f' {written}="{text(shown(value))}"'


def shown(value: str | float) -> str:
    """A number with at most two decimals, as coordinates need; a text as it is."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def join(*parts: Child) -> Html:
    """Several children as one."""
    return Html("".join(text(part) for part in parts))
