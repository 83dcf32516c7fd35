"""The pages in a real browser: quiet, complete, sized, safe, on a phone, in the dark and on paper."""

import importlib.util
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from theodolite.report.atlas import atlas_files
from theodolite.report.html import survey_fragment, survey_page

FLAGS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PAGES = ("survey", "atlas", "law", "fragment")


@pytest.fixture(scope="module")
def browser():
    spec = importlib.util.spec_from_file_location("browser_finder", Path(__file__).parents[1] / "browser.py")
    finder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(finder)
    path = finder.chromium()
    assert path, "no Chromium found; `python tests/browser.py` installs one"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def addresses(survey, atlas, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    fragment = "<!doctype html><html><head><meta charset=utf-8><title>notebook</title></head><body>{}</body></html>"
    texts = {
        "survey": survey_page(*survey),
        "fragment": fragment.format(survey_fragment(*survey)),
    }
    for name, text in {f"{name}.html": text for name, text in texts.items()}.items() | atlas_files(*atlas).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    paths = {"survey": "survey.html", "fragment": "fragment.html", "atlas": "atlas.html", "law": "laws/wrong.html"}
    return {name: (folder / path).as_uri() for name, path in paths.items()}


@pytest.fixture
def opened(browser, addresses):
    """Opens a page and collects all it says and asks for."""
    contexts = []

    def visit(name, *, width=1200, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(addresses[name])
        return page

    yield visit
    for context in contexts:
        context.close()


@pytest.mark.parametrize("name", PAGES)
def test_page_is_quiet_and_asks_for_nothing(opened, name):
    page = opened(name)
    assert page.said == []
    assert all(url.startswith(("file:", "data:")) for url in page.asked)
    own = [url for url in page.asked if url.startswith("file:") and not url.endswith(".svg")]  # the atlas has pictures
    assert len(own) == 1


@pytest.mark.parametrize("name", PAGES)
def test_hostile_names_are_shown_and_do_not_run(opened, hostile, name):
    page = opened(name)
    page.mouse.wheel(0, 10_000)
    assert page.title() != "pwned"
    assert page.locator("script, img:not([src^='laws/'])").count() == 0
    text = page.evaluate("document.body.textContent")
    for word in hostile:
        assert word in text
    assert page.said == []


def test_survey_shows_every_reading(opened, survey):
    page = opened("survey")
    text = page.evaluate("document.body.textContent")
    for answer in survey[1]:
        for reading in answer.readings:
            assert reading.quantity in text
            assert reading.where in text
    broken = page.evaluate(
        "[...document.querySelectorAll('a[href^=\"#\"]')].filter(a => !document.getElementById(a.hash.slice(1))).length"
    )
    assert broken == 0
    section = page.locator(".th-contents a").nth(1)
    section.click()
    assert page.url.endswith(section.get_attribute("href"))


def test_the_filter_hides_what_is_not_wrong_without_a_script(opened):
    page = opened("survey")
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    everything = page.locator(".th-body .th-group:visible").count()
    page.locator("#th-show-wrong").check()
    assert 0 < page.locator(".th-body .th-group:visible").count() < everything
    page.locator("#th-show-all").check()
    assert page.locator(".th-body .th-group:visible").count() == everything


@pytest.mark.parametrize("name", ["survey", "law"])
@pytest.mark.parametrize("width", [1200, 390])
def test_every_figure_has_size(opened, name, width):
    page = opened(name, width=width)
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    sizes = page.evaluate(
        "[...document.querySelectorAll('svg.th-figure, svg.th-formula')].map(f => f.getBoundingClientRect())"
        ".map(box => [box.width, box.height])"
    )
    assert len(sizes) >= (5 if name == "survey" else 2)
    assert all(wide > 5 and high > 5 for wide, high in sizes)
    figures = page.evaluate("[...document.querySelectorAll('svg.th-figure')].map(f => f.getBoundingClientRect().width)")
    assert all(wide > 250 for wide in figures)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [320, 390, 760])
def test_body_never_scrolls_sideways(opened, name, width):
    page = opened(name, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_cards_are_filtered_without_a_script(opened):
    page = opened("atlas")
    everything = page.locator(".th-card:visible").count()
    assert everything == 5
    page.get_by_label("kernels", exact=True).check()
    assert page.locator(".th-card:visible").count() == 2
    page.get_by_label("only errata of the literature").check()
    assert 0 < page.locator(".th-card:visible").count() <= 2
    page.get_by_label("all").first.check()
    assert page.locator(".th-card:visible").count() == 2


def brightness(page, what, name):
    """The mean of the colour channels, 0 to 255, of the first element of a kind."""
    script = f"getComputedStyle(document.querySelector({name!r})).{what}.match(/\\d+/g).slice(0, 3).map(Number)"
    return sum(page.evaluate(script)) / 3


@pytest.mark.parametrize("name", PAGES)
def test_dark_scheme_is_light_on_dark(opened, name):
    dark, light = opened(name, scheme="dark"), opened(name)
    assert brightness(dark, "color", ".theodolite") > 180 > 60 > brightness(dark, "backgroundColor", ".theodolite")
    assert brightness(light, "color", ".theodolite") < 60 < 180 < brightness(light, "backgroundColor", ".theodolite")
    if name in ("survey", "law"):
        assert brightness(dark, "fill", "svg.th-figure text") > 180
        assert brightness(light, "fill", "svg.th-figure text") < 60


CONTRAST = """() => {
  const channel = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(v => channel(Number(v)));
    return .2126 * r + .7152 * g + .0722 * b; };
  const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
  const poor = [];
  for (const e of document.querySelectorAll('.theodolite *:not(svg *):not(style)')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) poor.push([e.className, e.textContent.slice(0, 40), ratio]);
  }
  return poor;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_contrast_is_at_least_aa(opened, name, scheme):
    page = opened(name, scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert page.evaluate(CONTRAST) == []


@pytest.mark.parametrize("name", PAGES)
def test_prints_light(opened, name):
    page = opened(name, scheme="dark", width=700)
    page.emulate_media(media="print")
    assert brightness(page, "color", ".theodolite") < 60
    assert brightness(page, "backgroundColor", ".theodolite") > 240
    assert page.pdf(format="A4").startswith(b"%PDF")
