"""How well the texts of a page can be read, as WCAG 2 measures it."""

from __future__ import annotations

import re

SHADES = """
    const behind = (one) => {
      for (; one; one = one.parentElement) {
        const colour = getComputedStyle(one).backgroundColor
        if (colour !== "rgba(0, 0, 0, 0)") return colour
      }
    }
    const shown = [...document.querySelectorAll("body *")].filter((one) => one.checkVisibility())
    const worded = shown.filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    return worded.map((one) => [getComputedStyle(one).color, behind(one)])"""


def contrast(text: str, behind: str) -> float:
    """Of two colours, as WCAG 2 defines it."""
    darker, lighter = sorted((luminance(text), luminance(behind)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    """The relative luminance of `rgb(…)`, as WCAG 2 defines it."""
    shares = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
