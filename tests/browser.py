"""A headless Chromium for tests that look at pages; they are skipped where there is none."""

from __future__ import annotations

import json
import shutil

import pytest

OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """A driver with a fresh profile, whose console and network traffic can be read."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (browser and driver):
        pytest.skip("chromium and chromedriver are not installed")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for option in (*OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    page = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    page.get("about:blank")
    yield page
    page.quit()


def set_width(page, width, height=900):
    """Show the page as on a screen of this width; windows of a desktop have a smallest width."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def set_color_scheme(page, scheme):
    """Prefer "light" or "dark"."""
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )


def console_errors(page):
    """What the console has complained about since the last call."""
    return [entry["message"] for entry in page.get_log("browser") if entry["level"] in {"SEVERE", "WARNING"}]


def requested_addresses(page):
    """Addresses that the page has asked for since the last call, those in itself excepted."""
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
    sockets = [event["params"]["url"] for event in events if event["method"] == "Network.webSocketCreated"]
    addresses = [params["request"]["url"] for params in sent] + sockets
    return [address for address in addresses if not address.startswith("data:")]


def overflow(page):
    """By how many pixels the page is wider than the screen."""
    return page.execute_script(
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
