"""The pages in a real browser: quiet, complete, sized, safe, on a phone, in the dark and on paper."""

import html
import importlib.util
import math
import re
import sys
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from theodolite import catalogue
from theodolite.core.instrument import Instrument
from theodolite.core.question import Answer
from theodolite.core.reading import Band, Reading
from theodolite.report.atlas import atlas_files
from theodolite.report.dashboard import Dashboard, Heat, Panel, RunLine
from theodolite.report.html import survey_fragment, survey_page, watch_page
from theodolite.report.opening import Opening, StripCell, StripLayer
from theodolite.report.rendering import Frame, document_page

FLAGS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
SCRIPT = "<script>document.title='pwned'</script>"
IMAGE = '"><img src=x onerror="document.title=\'pwned\'">'
PAGES = ("survey", "atlas", "law", "fragment", "watch", "document")


WORDS = f"<h1>A heading</h1><p>{html.escape(SCRIPT)} {html.escape(IMAGE)}</p><pre tabindex=0>code</pre>"


def watched(survey):
    """The page of a run that died: two curves, two layers, phases and a mark, with hostile names."""
    title, answers, skipped, facts = survey
    steps = [0.0, 10.0, 20.0, 30.0]
    board = Dashboard(
        steps,
        [Panel("loss", [RunLine("on the probe", [2.3, 1e3, math.nan, 2.3]), RunLine("edge", [1.0] * 4, dashed=True)])],
        [Heat("gradient by layer", [SCRIPT, IMAGE], [[1.0, 10.0, 0.0, math.inf], [1e-3, 1.0, 1.0, 1.0]])],
        [(0.0, "lazy"), (10.0, "catapult"), (20.0, "dead")],
        [(20.0, f"dead: {SCRIPT}", True)],
    )
    opening = Opening(dashboard=board.pictures(), alarm=f"The run is dead: {IMAGE}")
    return watch_page(title, answers, skipped, facts, phases=[(0, "lazy", ""), (20, "dead", "why")], opening=opening)


def deep_survey(layers):
    """A sick network of so many layers: a strip of seven rows, eight quantities read in every layer."""
    names = [f"encoder.layers.{place}.attention" for place in range(layers)]
    rows = ("signal", "differences", "gradient", "change", "dimension", "alpha", "stable rank")
    strip = [
        StripLayer(n, "Linear 64 × 64", tuple(StripCell(row, "1.23", 0.5, row == "signal") for row in rows))
        for n in names
    ]
    question = Instrument(
        name="signal", question="How do signals travel?", read=lambda subject: (), needs={"model"}, cost="free"
    )
    answers = [
        Answer(
            question,
            tuple(
                Reading(
                    quantity=f"quantity {q}",
                    measured=1.0 + q,
                    stderr=0.1,
                    where=name,
                    expected=Band(0, 2),
                    meaning="Seen.",
                )
                for q in range(8)
                for name in names
            ),
            1.0,
        )
    ]
    return survey_page("deep", answers, [], {"parameters": "1"}, opening=Opening(strip=strip))


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
        "watch": watched(survey),
        "document": document_page("Words", WORDS, Frame(links=(("Home", "survey.html"),), search="survey.html")),
        "deep": deep_survey(300),
    }
    for name, text in {f"{name}.html": text for name, text in texts.items()}.items() | atlas_files(*atlas).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    paths = {**{name: f"{name}.html" for name in texts}, "atlas": "atlas.html", "law": "laws/wrong.html"}
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


@pytest.fixture(scope="module")
def shown(browser, addresses):
    """Pages that are only looked at, opened once for each scheme."""
    pages = {}

    def page(name, *, scheme="light"):
        if (name, scheme) not in pages:
            pages[name, scheme] = browser.new_context(color_scheme=scheme).new_page()
            pages[name, scheme].goto(addresses[name])
            pages[name, scheme].evaluate(
                "document.querySelectorAll('details').forEach(d => { d.dataset.first = d.open ? 'open' : ''; })"
            )
        pages[name, scheme].set_viewport_size({"width": 1200, "height": 900})
        return pages[name, scheme]

    yield page
    for page in pages.values():
        page.context.close()


@pytest.mark.parametrize("name", PAGES)
def test_page_is_quiet_and_asks_for_nothing(opened, name):
    page = opened(name)
    assert page.said == []
    assert all(url.startswith(("file:", "data:")) for url in page.asked)
    assert len([url for url in page.asked if url.startswith("file:")]) == 1


@pytest.mark.parametrize("name", PAGES)
def test_hostile_names_are_shown_and_do_not_run(opened, hostile, name):
    page = opened(name)
    page.mouse.wheel(0, 10_000)
    assert page.title() != "pwned"
    assert page.locator("script, img").count() == 0
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
        "[...document.querySelectorAll('svg.th-figure, math')].map(f => f.getBoundingClientRect())"
        ".map(box => [box.width, box.height])"
    )
    assert len(sizes) >= (5 if name == "survey" else 2)
    assert all(wide > 5 and high > 5 for wide, high in sizes)
    figures = page.evaluate("[...document.querySelectorAll('svg.th-figure')].map(f => f.getBoundingClientRect().width)")
    assert all(wide > 250 for wide in figures)


@pytest.mark.parametrize("name", PAGES)
def test_body_never_scrolls_sideways(opened, name):
    page = opened(name, width=760)
    for width in (760, 390, 320):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_cards_are_filtered_without_a_script(opened):
    page = opened("atlas")
    assert page.locator(".th-topic").count() == 3
    assert page.locator(".th-topic[open]").count() == 1, "topics but the first are folded"
    page.get_by_label("kernels", exact=True).check()
    assert page.locator(".th-card:visible").count() == 2
    page.get_by_label("all").first.check()
    page.get_by_label("only errata of the literature").check()
    assert page.locator(".th-card:visible").count() == page.locator(".th-card[data-erratum]").count() > 0


@pytest.mark.parametrize("width", [1200, 390])
def test_the_arrow_keys_go_through_the_layers_and_show_their_numbers(opened, width):
    page = opened("deep", width=width)
    tips = page.locator(".th-net-tip")
    seen = "[...document.querySelectorAll('.th-net-tip')].filter(tip => getComputedStyle(tip).opacity == 1).map(t => t.innerText)"
    assert page.evaluate(seen) == []
    page.locator(".th-net-layers input").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(seen) == [tips.nth(1).inner_text()]
    box = tips.nth(1).bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= width and box["height"] > 20
    page.keyboard.press("Tab")
    assert page.evaluate(seen) == [], "all layers are one stop on the way of the tabulator"


def brightness(page, what, name):
    """The mean of the color channels, 0 to 255, of the first element of a kind."""
    script = f"getComputedStyle(document.querySelector({name!r})).{what}.match(/\\d+/g).slice(0, 3).map(Number)"
    return sum(page.evaluate(script)) / 3


@pytest.mark.parametrize("name", PAGES)
def test_dark_scheme_is_light_on_dark(shown, name):
    dark, light = shown(name, scheme="dark"), shown(name)
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
def test_contrast_is_at_least_aa(shown, name, scheme):
    page = shown(name, scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert page.evaluate(CONTRAST) == []


@pytest.mark.parametrize("name", PAGES)
def test_prints_light(opened, name):
    page = opened(name, scheme="dark", width=700)
    page.emulate_media(media="print")
    assert brightness(page, "color", ".theodolite") < 60
    assert brightness(page, "backgroundColor", ".theodolite") > 240
    assert page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(shown, name, scheme):
    source = Path(importlib.util.find_spec("axe_playwright_python").origin).with_name("axe.min.js")
    page = shown(name, scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = d.dataset.first === 'open'; })")
    page.evaluate(source.read_text(encoding="utf-8"))
    asked = {"resultTypes": ["violations"]}
    if name == "fragment":
        asked["rules"] = {"region": {"enabled": False}, "html-has-lang": {"enabled": False}}
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        found = page.evaluate("asked => axe.run(document, asked)", asked)["violations"]
        bad = [(f["id"], f["nodes"][0]["html"][:200]) for f in found if f["impact"] in ("serious", "critical")]
        assert bad == [], width


def test_a_survey_of_300_layers_is_small_short_and_prints_on_few_pages(opened, addresses):
    from urllib.parse import unquote, urlparse

    assert Path(unquote(urlparse(addresses["deep"]).path)).stat().st_size < 3_000_000
    page = opened("deep", width=1440)
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = false; })")
    assert page.evaluate("document.documentElement.scrollHeight") < 6_000
    assert page.evaluate("document.documentElement.scrollWidth") <= 1440
    pdf = page.pdf(format="A4")
    assert len(re.findall(rb"/Type */Page\b(?!s)", pdf)) <= 6


def test_a_dead_run_is_red_at_first_sight(opened):
    page = opened("watch")
    alarm = page.locator(".th-verdict").first
    assert "dead" in alarm.inner_text()
    assert alarm.bounding_box()["y"] < 400
    red, green, blue = page.evaluate(
        "getComputedStyle(document.querySelector('.th-verdict')).color.match(/\\d+/g).slice(0, 3).map(Number)"
    )
    assert red > 2 * max(green, blue) / 1.2


def test_the_search_answers_while_one_types(browser, tmp_path):
    sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
    from generator import handbook, pages, reference

    entries = [pages.Page(f"{e.kind}s/{e.name}.html", e.name, "", e.summary, e.kind) for e in catalogue.entries()]
    others = [*handbook.question_rows(), *handbook.guide_pages(), *handbook.other_pages(), *reference.name_rows()]
    files = pages.search_files([*entries, *others]) | pages.framed([pages.Page("ailments/any.html", "Any", "")])
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    page = browser.new_page()
    for address, box, found in (
        ("search.html", "#q", "#found li:not([hidden]) a"),
        ("ailments/any.html", ".th-search input", ".th-search li a"),  # every page has a box
    ):
        page.goto((tmp_path / address).as_uri())
        for typed, wanted in SEARCHES.items():
            page.fill(box, typed)
            first = [row.inner_text() for row in page.query_selector_all(found)[:8]]
            assert wanted in first, (address, typed, first)
    assert page.locator(found).first.evaluate("link => link.href").startswith(tmp_path.as_uri())
    page.press(box, "Escape")
    assert page.locator(found).count() == 0


SEARCHES = {
    "learning rate": "step-too-large",
    "is my learning rate too high": "step-too-large",
    "loss nan": "Why is my loss NaN?",
    "overfitting": "overfits",
    "lora rank": "Which LoRA rank do I need?",
    "why does my loss not fall": "Why does my loss not fall?",
    "is my checkpoint healthy": "Is my checkpoint healthy?",
    "vanishing gradient": "gradient-vanishes",
    "is my batch size too small": "batch-noise",
    "which learning rate should i use": "Which learning rate should I take?",
    "does it work in a notebook": "While it trains",
}
