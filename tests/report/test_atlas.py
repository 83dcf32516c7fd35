"""The atlas: cards that lead to a page for each law; nothing a user wrote runs."""

from html.parser import HTMLParser

from theodolite import catalogue
from theodolite.report.atlas import atlas_files, atlas_page
from theodolite.report.formulas import formula, prose
from theodolite.report.unicode_math import unicode_formula, unicode_prose
from theodolite.report.views import slug


class Page(HTMLParser):
    """What a page consists of, leads to and says."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.ids, self.links, self.handlers, self.words = [], set(), [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.elements.append(tag)
        self.ids |= {values["id"]} if "id" in values else set()
        self.links += [values[name] for name in ("href", "src") if values.get(name)]
        self.handlers += [name for name in values if name.startswith("on")]

    def handle_data(self, data):
        self.words += data


def test_the_front_page_has_a_card_for_each_law_and_every_link_leads_somewhere(atlas):
    charted, topics, _ = atlas
    files = atlas_files(*atlas)
    for name, text in files.items():
        page = Page(text)
        assert not {"script", "iframe", "object"} & set(page.elements)
        assert not page.handlers
        for link in page.links:
            if link != "data:,":
                folder = name.rpartition("/")[0]
                target = link.removeprefix("../") if link.startswith("../") else f"{folder}/{link}".lstrip("/")
                assert link.startswith("#") or target in files, f"{name}: {link}"
    front = Page(files["atlas.html"])
    assert {slug(one.verdict.law.name) for one in charted} <= front.ids
    assert front.words.index("kernels, described") < front.words.index(topics["propagation"])
    assert {f"laws/{slug(one.verdict.law.name)}.html" for one in charted} <= set(files)


def test_a_law_has_its_figure_formula_cases_breaks_source_and_code(atlas):
    charted, _, references = atlas
    files = atlas_files(*atlas)
    pages = {one.verdict.law.name: files[f"laws/{slug(one.verdict.law.name)}.html"] for one in charted}
    for one in charted:
        page = Page(pages[one.verdict.law.name])
        assert pages[one.verdict.law.name].count('class="th-figure"') == 1 + len(one.breaks)
        assert all(reading.where in page.words for reading in one.verdict.readings)
        assert "More about it." in page.words
        assert one.code in page.words
    assert "breaking it breaks the law: seen" in pages["gain"]
    assert "(eq. 10)" in pages["gain"]
    assert references["he2015"].partition(" (")[0] in pages["gain"]
    assert "breaking it did not break the law" in pages["wrong"]
    assert "The literature says otherwise; the measurement refutes it." in pages["spread"]
    assert "unknown-key" in pages["spread"]
    assert "<math" in pages["gain"] and "<math" in files["atlas.html"]


def test_an_empty_atlas_is_a_page():
    assert "0 laws, 0 readings" in atlas_page([], {})


def test_every_formula_of_the_catalogue_is_drawn_and_said():
    for name in catalogue.law_names():
        law = catalogue.law(name)
        assert formula(law.formula).startswith(("<math", "<span")), f"{name}: {law.formula}"
        assert "\\" not in unicode_formula(law.formula), name
        texts = (law.claim, law.erratum or "", *law.assumes, catalogue.entry(name).docstring)
        for text in texts:
            assert "th-tex" not in prose(text), f"{name}: {text}"
            assert "$" not in unicode_prose(text), f"{name}: {text}"
