"""Pages that belong together: links at their head, one before and one after, a search box."""

from dataclasses import dataclass

from theodolite.report.rendering import rendered

Link = tuple[str, str]
"""Words, and an address from the root of the site."""


@dataclass(frozen=True)
class Frame:
    """What stands around a page of a site.

    ``root`` leads from the page to the root of the site; ``search`` is the address of the page that a search opens, ``script``
    that of the script that answers it.
    """

    root: str = ""
    links: tuple[Link, ...] = ()
    before: Link | None = None
    after: Link | None = None
    search: str = ""
    script: str = ""


def document_page(title: str, body: str, frame: Frame | None = None) -> str:
    """A page of documentation; ``body`` is HTML that is ours, not a user's."""
    from markupsafe import Markup

    return rendered("document.html.j2", title=title, body=Markup(body), frame=frame or Frame())
