"""The playground without a mouse, on narrow screens, by day and by night."""

from __future__ import annotations

import pytest

from browser import RIGHT, SHIFT, TAB, Browser
from contrast import SHADES, contrast, luminance
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
        browser.type("#temperature", "-1")
        browser.wait(lambda: browser.shows("#fault"), "a fault")
        shades: list[list[str]] = []
        for tab in ("answer", "chat", "prompt", "relaxations", "events"):
            browser.click(f"#tab-{tab}")
            browser.wait(lambda: not browser.script("return document.getAnimations().length"), "stillness")
            shades += browser.script(SHADES)
        browser.dark(on=False)
    assert len({text for text, _ in shades}) >= 6
    assert max(map(luminance, {behind for _, behind in shades})) < 0.5 or not dark
    for text, behind in shades:
        assert contrast(text, behind) >= 4.5, (text, behind)


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
