"""Runs the scripts of docs/gallery, each in a folder of its own, and shows their code, what they print and their pictures."""

from __future__ import annotations

import contextlib
import html
import io
import os
import runpy
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from generator.pages import Page
from theodolite.report.figures import series_figure

FOLDER = Path(__file__).parent.parent / "gallery"
ORDER = (
    "deep_tanh",
    "hot_cnn",
    "sentence_encoder",
    "memorized_images",
    "sparse_targets",
    "tuned_small",
    "layer_never_read",
)


Script = tuple[Page, dict[str, str]]
"""The page of a script, and by their addresses the pages that it wrote itself."""


def gallery_pages(pages: Sequence[Page]) -> list[Page]:
    """The pages of the scripts, the first of all their list."""
    rows = "".join(
        f'<li><a href="{Path(page.path).name}">{html.escape(page.title)}</a>: {html.escape(page.summary)}</li>'
        for page in pages
    )
    about = (
        "Whole examples, each run when these pages were made. Every script stands in docs/gallery and can be pasted."
    )
    return [
        Page("gallery/index.html", "Gallery", f"<h1>Gallery</h1><p>{about}</p><ul>{rows}</ul>", about, "gallery"),
        *pages,
    ]


def script_page(name: str) -> Script:
    """A script of `ORDER`, run now."""
    script = FOLDER / f"{name}.py"
    values, printed, written = run(script)
    title, _, about = (values["__doc__"] or name).strip().partition("\n")
    title, summary = title.rstrip("."), " ".join(about.split())
    figures = "".join(
        f'<figure class="th-picture">{series_figure(series)}'
        f'<figcaption class="th-small th-soft">{html.escape(caption)}</figcaption></figure>'
        for caption, series in values["pictures"]
    )
    own = {f"gallery/{name}-{file}": text for file, text in written.items()}
    links = ", ".join(f'<a href="{Path(path).name}">{path.partition("-")[2]}</a>' for path in own)
    links = f"<p>The page that it wrote: {links}.</p>" if links else ""
    code = script.read_text(encoding="utf-8").partition('"""\n\n')[2]
    body = (
        f"<h1>{html.escape(title)}</h1><p>{html.escape(summary)}</p>{figures}{links}<h2>What it printed</h2>"
        f'<pre tabindex="0">{html.escape(printed)}</pre><h2>The script</h2>'
        f'<pre tabindex="0"><code>{html.escape(code)}</code></pre>'
    )
    return Page(f"gallery/{name}.html", title, body, summary, "gallery"), own


def run(script: Path) -> tuple[dict[str, object], str, dict[str, str]]:
    """The names that a script leaves, what it printed and the pages it wrote; MNIST is looked for beside the repository."""
    beside = FOLDER.parents[2] / "shared" / "data" / "mnist"
    if beside.is_dir():
        os.environ.setdefault("MNIST", str(beside))
    printed, before = io.StringIO(), Path.cwd()
    print(f"gallery: {script.stem}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(printed):
        os.chdir(folder)
        try:
            values = runpy.run_path(str(script), run_name="__main__")
            written = {file.name: file.read_text(encoding="utf-8") for file in sorted(Path().glob("*.html"))}
            return values, printed.getvalue(), written
        finally:
            os.chdir(before)
