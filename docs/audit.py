"""What a browser and axe-core find on every page: `python docs/audit.py` after `make docs`, with Chromium and playwright.

Opens each page of docs/site, and the pages of docs/screenshots.py (surveys of a sick and a healthy network, of a checkpoint and
of 300 layers, runs, a design), in light and dark at 390 and 1,440 px. Counted are axe's serious and critical violations, errors
on the console, requests that leave the page's own folder, pages that scroll sideways. Of reports and the pages that people see
first also the length and the sheets of A4 when printed without scripts, beside what they were. The tables go to docs/pages.md. A
run over some views alone (`--views 390-dark`) keeps what others found.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import tempfile
from collections import defaultdict
from pathlib import Path

import screenshots  # beside this file
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
SITE, OUT, KEPT = HERE / "site", HERE / "pages.md", HERE / "site" / "audit.json"
VIEWS = {f"{width}-{scheme}": (width, scheme) for width in (390, 1440) for scheme in ("light", "dark")}
SERIOUS = ("serious", "critical")
FIRST_SEEN = ("index.html", "atlas.html", "errata.html", "laws/marchenko-pastur.html", "ailments/inputs-merge.html")
BEFORE = {
    "report: sick": "27,000 px, phone 42,800 px, 41 sheets",
    "atlas.html": "187,000 px, 5,600 KB",
    "index.html": "1,109 px wide on a phone",
}
"""What was measured before the pages were made anew."""
LOOK = """async asked => {
  const root = document.documentElement, size = [root.scrollHeight, root.scrollWidth];
  const found = await axe.run(document, {resultTypes: ['violations']});
  return [size, found.violations.filter(v => asked.includes(v.impact)).map(v => v.id + ' ' + v.nodes[0].html.slice(0, 120))];
}"""


def kind_of(path):
    """The kind of page that a row of the table is about."""
    folder = path.parent.name
    return {"site": path.stem, "laws": "law pages", "api": "API pages"}.get(folder, f"{folder} pages")


def audited(browser, pages, view, axe):
    """What is found on each page in one view."""
    width, scheme = VIEWS[view]
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    tab = context.new_page()
    errors, requests = [], []
    tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url))
    for kind, page in pages:
        errors.clear()
        requests.clear()
        tab.goto(page.as_uri())
        tab.evaluate(axe)
        (height, wide), violations = tab.evaluate(LOOK, SERIOUS)
        outside = [url for url in requests if not url.startswith(("file:", "data:"))]
        yield {
            "kind": kind,
            "page": page.name,
            "bytes": page.stat().st_size,
            "height": height,
            "violations": violations,
            "errors": list(errors),
            "outside": outside,
            "sideways": wide > width,
        }
    context.close()


def lengths(browser, pages):
    """Size, length in both widths, width on a phone, and sheets of A4 without scripts."""
    for name, page in pages:
        found = {"name": name, "bytes": page.stat().st_size}
        for width in (1440, 390):
            tab = browser.new_page(viewport={"width": width, "height": 900})
            tab.goto(page.as_uri())
            root = "document.documentElement"
            found[str(width)], found["wide"] = tab.evaluate(f"[{root}.scrollHeight, {root}.scrollWidth]")
            tab.close()
        context = browser.new_context(java_script_enabled=False)
        tab = context.new_page()
        tab.goto(page.as_uri())
        found["sheets"] = len(re.findall(rb"/Type\s*/Page\b", tab.pdf(format="A4")))
        context.close()
        yield found


def length_table(found):
    """Lengths beside what they were, as Markdown."""
    lines = [
        "| page | KB | long at 1,440 px | long at 390 px | wide at 390 px | sheets of A4 | before |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    lines += [
        f"| {one['name']} | {one['bytes'] / 1e3:,.0f} | {one['1440']:,} | {one['390']:,} | {one['wide']} | {one['sheets']} | "
        f"{BEFORE.get(one['name'], '')} |"
        for one in found
    ]
    return "\n".join(lines)


def table(kept):
    """The rows by kind of page, as Markdown."""
    rows = defaultdict(list)
    for view, found in kept.items():
        for one in found:
            rows[one["kind"]].append({**one, "view": view})
    lines = [
        "| pages | how many | largest, KB | tallest at 1,440 px | at 390 px | serious or critical | console errors | "
        "requests outside | scroll sideways |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for kind, found in sorted(rows.items()):
        tall = {
            width: max((o["height"] for o in found if o["view"].startswith(width)), default=0)
            for width in ("1440", "390")
        }
        counts = [sum(len(one[name]) for one in found) for name in ("violations", "errors", "outside")]
        lines.append(
            f"| {kind} | {len({one['page'] for one in found})} | {max(one['bytes'] for one in found) / 1e3:.0f} | "
            f"{tall['1440']:,} | {tall['390']:,} | {' | '.join(map(str, counts))} | {sum(one['sideways'] for one in found)} |"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--views", nargs="*", choices=VIEWS, default=list(VIEWS))
    parser.add_argument("--only", default="", help="pages whose kind matches this expression")
    options = parser.parse_args()
    source = Path(importlib.util.find_spec("axe_playwright_python").origin).with_name("axe.min.js")
    notes = {"views": {}, "lengths": []} | (json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {})
    kept = notes["views"]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        asked = re.search(options.only, "report: ")
        reports = screenshots.report_pages(Path(folder)) if asked else {}
        made = [(f"report: {name}", path) for name, path in reports.items()]
        pages = [*made, *((kind_of(path), path) for path in sorted(SITE.rglob("*.html")))]
        pages = [pair for pair in pages if re.search(options.only, pair[0])]
        browser = playwright.chromium.launch(
            executable_path=screenshots.chromium(), args=["--no-sandbox", "--headless"]
        )
        if asked:
            shown = [(name, SITE / name) for name in FIRST_SEEN]
            notes["lengths"] = list(lengths(browser, [*made, *shown]))
        for view in options.views:
            found = list(audited(browser, pages, view, source.read_text(encoding="utf-8")))
            names = {(one["kind"], one["page"]) for one in found}
            others = [one for one in kept.get(view, []) if (one["kind"], one["page"]) not in names]
            kept[view] = others + found
            KEPT.write_text(json.dumps(notes), encoding="utf-8")
            print(f"{view}: {len(found)} pages, {sum(len(one['violations']) for one in found)} violations", flush=True)
        browser.close()
    bad = [one for found in kept.values() for one in found if one["violations"] or one["errors"] or one["outside"]]
    print("\n".join(f"{one['page']}: {one['violations'] or one['errors'] or one['outside']}" for one in bad[:20]))
    pages = len({(one["kind"], one["page"]) for found in kept.values() for one in found})
    OUT.write_text(
        "# What a browser finds on the pages\n\n"
        f"{pages} pages, each in light and dark at 390 and 1,440 px ({', '.join(sorted(kept))}): axe-core's serious and critical "
        "violations, errors on the console, requests that leave the disk, and scrolling sideways. Sections of reports are folded "
        "as they open. Made by `python docs/audit.py`.\n\n"
        + table(kept)
        + "\n\n## Sizes and lengths, before and after\n\nFolded as they open; printed without scripts.\n\n"
        + length_table(notes["lengths"])
        + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
