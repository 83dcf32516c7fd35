"""A page of documentation and what stands around it."""

from fixtures.page_outline import Outline
from theodolite.report.sites import Frame, document_page


def test_the_body_is_ours_and_the_title_is_text():
    seen = Outline(document_page("a < b", "<p id='x'>words</p>"))
    assert not seen.open
    assert "x" in seen.ids and "a < b" in "".join(seen.text)


def test_links_lead_from_the_root_and_to_the_neighbors():
    frame = Frame(root="../", links=(("Laws", "laws.html"),), before=("one", "a.html"), after=("two", "b.html"))
    links = Outline(document_page("t", "", frame)).links
    assert {"../laws.html", "../a.html", "../b.html"} <= set(links)
