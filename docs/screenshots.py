"""Pictures of the pages for README and docs: `python docs/screenshots.py` after `make docs`, with Chromium and playwright.

The run of examples/train.py, a sick and a healthy network surveyed, and the front page; light and dark, on a desk and a phone.
They are few, small and reduced to 64 colors, and go to docs/pictures.
"""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from PIL import Image
from playwright.sync_api import sync_playwright
from safetensors.torch import save_file
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

import theodolite as th

HERE = Path(__file__).parent
OUT = HERE / "pictures"
COLOURS = 64
SIZES = {"desk": (1200, 820), "phone": (390, 760)}
VIEWS = {
    f"{name}{end}": (size, scheme) for name, size in SIZES.items() for end, scheme in (("", "light"), ("-dark", "dark"))
}


def digits():
    found = load_digits()
    return torch.tensor(found.data, dtype=torch.float32) / 16, torch.tensor(found.target)


def network(depth, act):
    torch.manual_seed(0)
    hidden = [layer for _ in range(depth) for layer in (nn.Linear(64, 64), act())]
    return nn.Sequential(*hidden, nn.Linear(64, 10))


class Residual(nn.Module):
    """A network of 300 matrices that trains: each block adds a little to what goes around it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(64, 32), nn.Linear(32, 10)
        self.blocks = nn.ModuleList(nn.Linear(32, 32) for _ in range(298))

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = x + 0.06 * torch.relu(block(x))
        return self.last(x)


def survey_page(path, model, *, epochs=12, lr=0.1):
    """The survey of a network that was trained for some epochs."""
    x, y = digits()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for epoch in range(epochs):
        for rows in torch.randperm(1400, generator=torch.Generator().manual_seed(epoch)).split(64):
            optimizer.zero_grad()
            cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
    subject = th.Subject(model, data=(x[:1400], y[:1400]), loss=cross_entropy, lr=lr)
    th.survey(subject, validation=(x[1400:], y[1400:]), budget="15s").html(path)


def watch_page(path, depth=3, lr=6.0):
    """A run; with a step of 6 it kills the network."""
    x, y = digits()
    model = network(depth, nn.ReLU)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    watch = th.Watch(
        model,
        optimizer=optimizer,
        probe=(x[:256], y[:256]),
        validation=(x[1400:], y[1400:]),
        loss=cross_entropy,
        every=8,
        budget=math.inf,
    )
    for step in range(160):
        rows = torch.randperm(1400, generator=torch.Generator().manual_seed(step))[:64]
        optimizer.zero_grad()
        cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
        watch(step)
    watch.html(path)
    return model


def report_pages(folder):
    """Reports of every kind, written to a folder: surveys, runs, a design, a diagnosis."""
    x, y = digits()
    survey_page(folder / "sick.html", network(20, nn.Tanh))
    survey_page(folder / "healthy.html", network(2, nn.ReLU), epochs=60)
    survey_page(folder / "300-live-layers.html", Residual(), epochs=2, lr=0.05)
    watch_page(folder / "hot.html")
    calm = watch_page(folder / "calm.html", depth=2, lr=0.2)
    save_file({name: value.contiguous() for name, value in calm.state_dict().items()}, folder / "net.safetensors")
    th.survey(str(folder / "net.safetensors")).html(folder / "checkpoint.html")
    deep = {f"layers.{place}.weight": torch.randn(24, 24) / 24**0.5 for place in range(300)}
    save_file(deep, folder / "deep.safetensors")
    th.survey(str(folder / "deep.safetensors")).html(folder / "300-layers.html")
    th.design(activation="tanh", depth=32, width=512, samples=50_000).html(folder / "design.html")
    found = th.diagnose(network(20, nn.Tanh), data=(x[:1400], y[:1400]), loss=cross_entropy, lr=0.1, budget="8s")
    found.html(folder / "diagnosis.html")
    names = ("sick", "healthy", "300-live-layers", "checkpoint", "300-layers", "hot", "calm", "design", "diagnosis")
    return {name: folder / f"{name}.html" for name in names}


def chromium():
    """The browser that the tests use."""
    spec = importlib.util.spec_from_file_location("browser_finder", HERE.parent / "tests" / "browser.py")
    finder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(finder)
    return finder.chromium()


def main():
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        made = Path(folder)
        written = report_pages(made)
        example = HERE.parent / "examples" / "train.py"
        subprocess.run(
            [sys.executable, "-m", "theodolite", "run", "--out", str(made / "run"), str(example)], check=True
        )
        pages = {"run": made / "run" / "run.html", "sick": written["sick"], "healthy": written["healthy"]}
        pages |= {"front": HERE / "site" / "index.html"}
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--headless"])
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
