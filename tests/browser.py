"""Where the tests find a Chromium; run as a script it installs one where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def chromium() -> str | None:
    """The path of a Chromium on this machine; the variable CHROMIUM overrides the search."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found:
        return found
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if os.path.exists(own) else None


def install() -> None:
    """Debian's package where we may install it, else the build that playwright brings."""
    if shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["apt-get", "update", "--quiet"], check=True)
        subprocess.run(["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "chromium"], check=True)
    else:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=True)


if __name__ == "__main__":
    if chromium() is None:
        install()
    print(f"browser for the page tests: {chromium()}")
