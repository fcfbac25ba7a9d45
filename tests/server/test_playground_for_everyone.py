"""The playground without a mouse, on narrow screens, by day and by night."""

from __future__ import annotations

import re

import pytest

from browser import RIGHT, SHIFT, TAB, Browser
from playground_page import Telling, page, run, texts


@pytest.mark.parametrize("width", [360, 768, 1360])
def test_nothing_is_cut_off_and_everything_has_a_name(browser: Browser, width: int) -> None:
    with page(browser, Telling()):
        browser.size(width, 740)
        run(browser)
        wide = "return document.documentElement.scrollWidth - innerWidth"
        for tab in ("answer", "chat", "prompt", "grammar", "relaxations", "events", "body"):
            browser.click(f"#tab-{tab}")
            assert browser.script(wide) <= 0, tab
        assert browser.script(_TABS_CUT_OFF) == []
        browser.click("#tab-chat")
        browser.click("#chat-form button")  # which nothing covers
        browser.wait(lambda: len(texts(browser, "#turns .turn")) == 5, "another answer")
        nameless = """
            return [...document.querySelectorAll("input, select, textarea, button")]
              .filter((one) => one.checkVisibility())
              .filter((one) => !one.labels?.length && !one.ariaLabel)
              .filter((one) => !one.matches("button") || !one.textContent.trim())
              .map((one) => one.outerHTML)"""
        assert browser.script(nameless) == []


_TABS_CUT_OFF = """
    return [...document.querySelectorAll("[role=tab]")]
      .filter((tab) => tab.scrollWidth > tab.clientWidth || tab.getBoundingClientRect().right > innerWidth)
      .map((tab) => tab.id)"""


@pytest.mark.parametrize("dark", [False, True])
def test_texts_can_be_read_by_day_and_by_night(browser: Browser, dark: bool) -> None:
    """The contrast of every colour of text with what is behind it is at least 4.5, as WCAG asks."""
    with page(browser, Telling(), refusals=True):
        browser.dark(on=dark)
        run(browser)
        browser.type("#temperature", "9")
        browser.wait(lambda: browser.shows("#fault"), "a fault")
        shades: list[list[str]] = []
        for tab in ("answer", "chat", "prompt", "relaxations", "events"):
            browser.click(f"#tab-{tab}")
            browser.wait(lambda: not browser.script("return document.getAnimations().length"), "stillness")
            shades += browser.script(_SHADES)
        browser.dark(on=False)
    assert len({text for text, _ in shades}) >= 6
    assert max(map(_luminance, {behind for _, behind in shades})) < 0.5 or not dark
    for text, behind in shades:
        darker, lighter = sorted((_luminance(text), _luminance(behind)))
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (text, behind)


_SHADES = """
    const behind = (one) => {
      for (; one; one = one.parentElement) {
        const colour = getComputedStyle(one).backgroundColor
        if (colour !== "rgba(0, 0, 0, 0)") return colour
      }
    }
    const shown = [...document.querySelectorAll("body *")].filter((one) => one.checkVisibility())
    const worded = shown.filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    return worded.map((one) => [getComputedStyle(one).color, behind(one)])"""


def _luminance(colour: str) -> float:
    """The relative luminance of `rgb(…)`, as WCAG 2 defines it."""
    shares = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_keyboard_reaches_everything(browser: Browser) -> None:
    with page(browser, Telling()):
        wanted = browser.script("""
            return [...document.querySelectorAll("input, select, textarea, button, summary, [tabindex='0']")]
              .filter((one) => one.checkVisibility() && one.tabIndex >= 0).length""")
        seen: list[str] = []
        browser.script("document.activeElement.blur(); getSelection().removeAllRanges()")
        for _ in range(wanted):
            browser.keys(TAB)
            place = "const one = document.activeElement; return one.id || one.ariaLabel || one.textContent"
            seen.append(browser.script(place))
            outline = "return getComputedStyle(document.activeElement).outlineStyle"
            assert browser.script(outline) == "solid", seen[-1]
        assert len(set(seen)) == wanted, seen
        assert seen.index("example") < seen.index("add-tool") < seen.index("model") < seen.index("tab-answer")
        browser.keys(SHIFT, TAB)
        browser.script("document.querySelector('#tab-answer').focus()")
        browser.keys(RIGHT)
        assert browser.shows("#chat")
        assert browser.script("return document.activeElement.id") == "tab-chat"
