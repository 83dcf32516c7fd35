"""Pictures of the pages for README and docs: `python docs/screenshots.py` after `make docs`, with Chromium and playwright.

A sick and a healthy network surveyed, a run that is too hot, the atlas and the front page; light on a desk, dark on a phone.
They are few, small and reduced to 64 colours, and go to docs/pictures.
"""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path

import torch
from PIL import Image
from playwright.sync_api import sync_playwright
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th

HERE = Path(__file__).parent
OUT = HERE / "pictures"
COLOURS = 64
VIEWS = {"desk": ((1200, 820), "light"), "phone": ((390, 760), "dark")}


def digits():
    found = load_digits()
    return torch.tensor(found.data, dtype=torch.float32) / 16, torch.tensor(found.target)


def network(depth, act):
    torch.manual_seed(0)
    hidden = [layer for _ in range(depth) for layer in (nn.Linear(64, 64), act())]
    return nn.Sequential(*hidden, nn.Linear(64, 10))


def survey_page(path, depth, act):
    """The survey of a network that was trained for a few epochs."""
    x, y = digits()
    model = network(depth, act)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(12):
        for rows in torch.randperm(1400, generator=torch.Generator().manual_seed(epoch)).split(64):
            optimizer.zero_grad()
            cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
    subject = th.Subject(model, data=(x[:1400], y[:1400]), loss=cross_entropy, lr=0.1)
    th.survey(subject, budget="15s").html(path)


def watch_page(path):
    """A run with a step of 6, which kills the network."""
    x, y = digits()
    model = network(3, nn.ReLU)
    optimizer = torch.optim.SGD(model.parameters(), lr=6.0)
    watch = th.Watch(
        model,
        optimizer=optimizer,
        probe=(x[:256], y[:256]),
        validation=(x[1400:], y[1400:]),
        loss=cross_entropy,
        every=8,
    )
    for step in range(160):
        rows = torch.randperm(1400, generator=torch.Generator().manual_seed(step))[:64]
        optimizer.zero_grad()
        cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
        watch(step)
    watch.html(path)


def main():
    spec = importlib.util.spec_from_file_location("browser_finder", HERE.parent / "tests" / "browser.py")
    finder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(finder)
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        made = Path(folder)
        survey_page(made / "sick.html", 20, nn.Tanh)
        survey_page(made / "healthy.html", 2, nn.ReLU)
        watch_page(made / "hot.html")
        pages = {name: made / f"{name}.html" for name in ("sick", "healthy", "hot")}
        pages |= {"atlas": HERE / "site" / "atlas.html", "front": HERE / "site" / "index.html"}
        browser = playwright.chromium.launch(executable_path=finder.chromium(), args=["--no-sandbox", "--headless"])
        for name, page in pages.items():
            for view, ((width, height), scheme) in VIEWS.items():
                context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
                tab = context.new_page()
                tab.goto(page.as_uri())
                picture = OUT / f"{name}-{view}.png"
                tab.screenshot(path=picture)
                Image.open(picture).convert("RGB").quantize(COLOURS).save(picture, optimize=True)
                context.close()
        browser.close()
    print(f"{sum(p.stat().st_size for p in OUT.glob('*.png')):,} bytes in {OUT}")


if __name__ == "__main__":
    main()
