"""The report in a real browser, without a network. Without Chromium these tests are skipped and say so."""

import io
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from skeleton_cgl.analysis.names import name_learners
from skeleton_cgl.analysis.report import write_report
from skeleton_cgl.scenarios.lessons import describe
from tests.analysis.made_scores import UNITS, learner, random_scores
from tests.analysis.made_store import made_store

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"]
DESKTOP = {"viewport": {"width": 1280, "height": 1000}}
PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True, "device_scale_factor": 2}
PATIENCE = 120_000
"""Milliseconds: a busy machine is slow, not wrong."""
NAMES = ("</script><script>alert(1)</script> <b>&amp;</b>", *UNITS[1:])

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: install the package `chromium`")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET, timeout=PATIENCE)
        yield started
        started.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_report(made_store(folder / "x.db", replace(random_scores(), units=NAMES)), folder / "x.html")
    return folder / "x.html"


@pytest.fixture(scope="module")
def expected() -> pd.DataFrame:
    """The ordinary runs, by what the page calls them, with accuracies per class and AA computed by hand."""
    scores = random_scores().ordinary()
    methods = {row.number: row.method.name for row in scores.learners}
    runs = pd.DataFrame([vars(run) for run in scores.runs])
    by_class = list(scores.test[:, -1])
    average = [np.mean(accuracies) for accuracies in by_class]
    codes, names = runs["order"].map(describe), runs["learner"].map(methods)
    return runs.assign(by_class=by_class, AA=average, code=codes, method=names)


def open_page(browser: Browser, report: Path, **settings: object) -> Page:
    """Return the page, loaded; the test fails at once if it reports an error or asks for anything but itself."""
    page = browser.new_context(offline=True, **settings).new_page()
    page.set_default_timeout(PATIENCE)
    page.troubles = []
    page.on("pageerror", lambda error: page.troubles.append(str(error)))
    page.on("console", lambda message: page.troubles.append(message.text))
    page.on("request", lambda request: page.troubles.append(request.url))
    page.goto(report.as_uri())
    page.wait_for_selector("#scatter .point")
    assert [trouble for trouble in page.troubles if not trouble.startswith("data:")] == [report.as_uri()]
    return page


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Page]:
    opened = open_page(browser, report, **DESKTOP)
    yield opened
    assert [trouble for trouble in opened.troubles if not trouble.startswith("data:")] == [report.as_uri()]
    opened.context.close()


def centre(page: Page, point: int) -> tuple[float, float]:
    found = page.locator("#scatter .point").nth(point)
    found.scroll_into_view_if_needed()
    box = found.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def check_detail(page: Page, expected: pd.DataFrame) -> str:
    """Compare the panel of the chosen point with the run it names; return its order."""
    panel = page.locator("#detail")
    about = panel.locator("p").first.inner_text()
    code = panel.get_by_text(re.compile("^Order ")).inner_text().removeprefix("Order ")
    named = (panel.locator("h3").inner_text().lower(), int(about.split("repeat ")[1]), code)
    run = expected.set_index(["method", "repeat", "code"]).loc[named]
    assert f"{run['kind']} order" in about
    assert f"AA {run['AA']:.3f}" in panel.locator(".measures").inner_text()
    rows = [row.locator("th, td").all_inner_texts() for row in panel.locator("tbody tr").all()]
    assert [(name, number) for _, name, number in rows] == [
        (NAMES[label], f"{run['by_class'][label]:.3f}") for task in run["order"] for label in task
    ]
    return code


def test_hovering_shows_order_and_accuracies(page: Page, expected: pd.DataFrame) -> None:
    page.mouse.move(*centre(page, 5))
    page.wait_for_selector("#detail h3")
    code = check_detail(page, expected)
    label = page.locator("#scatter .hoverlayer").text_content()
    for task in code.split(" > "):
        assert " + ".join(NAMES[int(name)] for name in task.split(",")) in label


def test_tapping_shows_the_same_on_a_phone(browser: Browser, report: Path, expected: pd.DataFrame) -> None:
    page = open_page(browser, report, **PHONE)
    page.touchscreen.tap(*centre(page, 5))
    page.wait_for_selector("#detail h3")
    check_detail(page, expected)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.context.close()


def test_methods_are_chosen_by_their_boxes(page: Page) -> None:
    points = page.locator("#scatter .point")
    expect(points).to_have_count(32, timeout=PATIENCE)
    page.get_by_label("Bare").uncheck()
    expect(points).to_have_count(16, timeout=PATIENCE)
    page.get_by_role("button", name="None").click()
    expect(points).to_have_count(0, timeout=PATIENCE)
    page.get_by_role("button", name="All").click()
    expect(points).to_have_count(32, timeout=PATIENCE)
    page.get_by_role("combobox", name="Orders").select_option("class")
    page.get_by_role("combobox", name="Repeat").select_option("1")
    expect(points).to_have_count(4, timeout=PATIENCE)
    assert page.locator("#count").inner_text() == "4 points"


def test_a_region_tells_what_comes_first_and_last(page: Page, expected: pd.DataFrame) -> None:
    tasks = expected[expected["kind"] == "task"]
    edge = tasks["AA"].median() - 0.0005
    inside = tasks[tasks["AA"] >= edge]
    page.get_by_role("combobox", name="Orders").select_option("task")
    page.get_by_label("AA from").fill(f"{edge:.4f}")
    page.wait_for_selector("#tally table")
    assert page.locator("#count").inner_text() == f"{len(inside)} of {len(tasks)} points selected"
    for number, row in enumerate(page.locator("#tally tbody tr").all()):
        task = (2 * number, 2 * number + 1)
        name, *shares = row.locator("th, td").all_inner_texts()
        assert name == " + ".join(NAMES[label] for label in task)
        for share, (runs, place) in zip(shares, [(inside, 0), (tasks, 0), (inside, -1), (tasks, -1)], strict=True):
            exact = 100 * np.mean([order[place] == task for order in runs["order"]])
            assert abs(int(share.split()[0]) - exact) <= 0.5
    page.get_by_role("button", name="Clear").click()
    assert page.locator("#tally table").count() == 0


def test_a_region_can_be_drawn(page: Page) -> None:
    centre(page, 0)
    plot = page.locator("#scatter .nsewdrag").bounding_box()
    page.mouse.move(plot["x"] + 5, plot["y"] + 5)
    page.mouse.down()
    page.mouse.move(plot["x"] + plot["width"] / 2, plot["y"] + plot["height"] - 5, steps=4)
    page.mouse.up()
    page.wait_for_selector("#tally p")
    low, high = (float(page.locator(f"#aa-{end}").input_value()) for end in ("from", "to"))
    assert (low, high) == pytest.approx((0.007, 0.51), abs=0.01)
    assert "selected" in page.locator("#count").inner_text()


def test_points_are_reached_by_the_keyboard(page: Page, expected: pd.DataFrame) -> None:
    page.get_by_role("combobox", name="Repeat").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "scatter-frame"
    seen = []
    for key in ("ArrowRight", "ArrowRight", "End"):
        page.keyboard.press(key)
        check_detail(page, expected)
        seen.append(float(page.locator("#detail .measures b").first.inner_text()))
    averages = sorted(expected["AA"].round(3))
    assert seen == pytest.approx([averages[0], averages[1], averages[-1]], abs=0.0011)
    page.keyboard.press("ArrowDown")
    check_detail(page, expected)


def test_the_picture_shows_every_method_in_the_light_and_in_the_dark(page: Page) -> None:
    for scheme, bare in (("light", "#000000"), ("dark", "#ffffff")):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_selector(f"#methods path[fill='{bare}']", state="attached")
        picture = Image.open(io.BytesIO(page.locator("#scatter").screenshot())).convert("RGB")
        colours, counts = np.unique(np.asarray(picture, dtype=int).reshape(-1, 3), axis=0, return_counts=True)
        ground = colours[counts.argmax()]
        assert (ground.sum() > 700) == (scheme == "light")
        for colour in (bare, name_learners([learner(0, "replay")])[0].colour):
            rgb = np.array([int(colour[start : start + 2], 16) for start in (1, 3, 5)])
            # Points are translucent: three parts of their own colour, one of the ground.
            near = np.abs(colours - (0.75 * rgb + 0.25 * ground)).max(axis=1) < 12
            assert counts[near].sum() > 100
