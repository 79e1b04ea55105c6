"""Pages in a real browser without a window: a fixture for a ``conftest.py``, and what its tests ask of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PHONE, DESK = (390, 844), (1280, 900)
_FLAGS = (
    "headless=new",
    "no-sandbox",
    "disable-gpu",
    "disable-dev-shm-usage",
    "no-first-run",
    "disable-background-networking",
    "disable-component-update",
    "disable-sync",
    "hide-scrollbars",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("chromium or chromedriver is not installed")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*_FLAGS, f"user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    yield opened
    opened.quit()


def show(browser: Any, page: Path, size: tuple[int, int] = DESK, scheme: str = "light") -> None:
    """Open a page on a screen of this size."""
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(page.as_uri())


def requests(browser: Any) -> list[str]:
    """Addresses that were asked for since the log was last read."""
    messages = (entry["message"] for entry in browser.get_log("performance"))
    return [m.split('"url":"')[1].split('"')[0] for m in messages if "requestWillBeSent" in m]


def complaints(browser: Any) -> list[dict[str, Any]]:
    """What the browser calls severe."""
    return [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def colour(browser: Any, selector: str, name: str) -> str:
    """A colour of the first element of that selector."""
    script = "return getComputedStyle(document.querySelector(arguments[0])).getPropertyValue(arguments[1])"
    return str(browser.execute_script(script, selector, name))


def contrast(one: str, other: str) -> float:
    """Between two "rgb(r, g, b)", as WCAG 2 defines it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(rgb: str) -> float:
    """Relative luminance (WCAG 2) of "rgb(r, g, b)"."""
    parts = [float(part) / 255 for part in rgb.split("(")[1].rstrip(")").split(",")[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
