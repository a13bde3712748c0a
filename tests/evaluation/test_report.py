"""The report: its numbers against the model, what it does with hostile names, and the page in a browser."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from browser import chromium, console_errors, overflow, requested_addresses, set_color_scheme, set_width
from scipy import stats

from wienerkernel import RBF, Mixture, WienerKernelRegressor
from wienerkernel.evaluation.diagnostics import score_report
from wienerkernel.evaluation.report import contents, page, write_report
from wienerkernel.evaluation.report import numbers as numbers_room
from wienerkernel.evaluation.report import scores as scores_room

__all__ = ["chromium"]

GAMMA = "gamma(0.25, scale=2)"
HOSTILE = "</script><script>window.hacked = 1</script><!-- \"'&amp;"


def _model(n=25, d=1, outputs=None, noise=GAMMA, scale=1.0, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = scale * rng.uniform(-3, 3, (n, d))
    f = np.sin(X[:, 0] / scale)
    y = f if outputs is None else np.column_stack([(k + 1) * f for k in range(outputs)])
    y = y + rng.gamma(0.25, 2.0, y.shape)
    return WienerKernelRegressor(2.0 * RBF(scale), noise=noise, tuning=None, **options).fit(X, y)


def _data(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1]
    )


class _Outline(HTMLParser):
    """Tags and visible text of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.words = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)


def _outline(path):
    outline = _Outline()
    outline.feed(path.read_text(encoding="utf-8"))
    return outline


@pytest.fixture(scope="module")
def model():
    return _model()


@pytest.fixture(scope="module")
def told(model):
    return contents(model)


def test_tubes_are_the_exact_quantiles(model, told):
    part = told["slices"][0]
    grid = np.array(part["x"])[:, None]
    for law in ("estimate", "function", "observation"):
        exact = model.predict_quantiles(grid, [0.05, 0.95], of=law)
        told = np.stack([part["tubes"][law]["low"], part["tubes"][law]["high"]], axis=1)
        np.testing.assert_allclose(np.array(part["mean"][0])[:, None] + told, exact, atol=2e-5)


def test_densities_are_those_of_the_laws_and_hold_almost_all_probability(model, told):
    part = told["slices"][0]
    grid = np.array(part["x"])[part["at"], None]
    for law in ("estimate", "function", "observation"):
        density = part["densities"][law]
        exact = model.predict_distribution(grid, of=law)
        k = len(grid) // 3
        y = np.array(density["y"][k]) + float(exact.mu[k])
        np.testing.assert_allclose(density["pdf"][k], exact.pdf(y[:, None])[:, k], rtol=1e-3)
        assert np.trapezoid(density["pdf"][k], density["y"][k]) == pytest.approx(0.998, abs=0.01)
        assert density["std"][k] == pytest.approx(exact.std()[k], rel=1e-5)


def test_variances_and_shares_are_those_of_the_model(model, told):
    part = told["slices"][0]
    split = model.uncertainty(np.array(part["x"])[:, None])
    np.testing.assert_allclose(part["variance"]["model"], split.model, rtol=1e-4)
    np.testing.assert_allclose(part["variance"]["noise"], split.noise, rtol=1e-4)
    assert sum(told["shares"].values()) == pytest.approx(1.0, abs=1e-5)
    smoother = model.posterior_.smoother
    at_data = model.uncertainty(smoother.places)
    assert told["shares"]["aleatoric"] == pytest.approx(
        np.mean(at_data.aleatoric) / np.mean(at_data.total), rel=1e-4
    )


def test_data_are_the_observations_with_the_mean_of_the_noise():
    X, y = [[0.0], [1.0], [2.0]], [3.0, -1.0, 0.5]
    model = WienerKernelRegressor(RBF(1.0), noise=GAMMA, tuning=None).fit(X, y, noise_scale=[1.0, 2.0, 0.5])
    assert contents(model)["data"]["y"] == [pytest.approx(y)]


def test_scores_are_those_of_the_score_report(model, told):
    told, report = told["scores"], score_report(model)
    assert told["scored"] == 25
    for name, value in report.summary().items():
        assert told["summary"][name] == pytest.approx(value, rel=1e-4)
    assert sum(told["pit"]["counts"]) == 25
    noise, residuals = report.quantile_pairs()
    np.testing.assert_allclose(told["pairs"]["residual"], residuals, rtol=1e-5)
    np.testing.assert_allclose(told["pairs"]["noise"], noise, rtol=1e-4, atol=1e-6)


def test_band_of_the_histogram_holds_95_percent_of_the_counts_of_uniform_numbers():
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(200):
        told = scores_room._histogram(rng.uniform(size=200))
        inside += [told["low"] <= count <= told["high"] for count in told["counts"]]
    assert 0.94 < np.mean(inside) < 0.98


def test_many_samples_are_thinned_and_the_page_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(numbers_room, "MAX_DATA", 30)
    monkeypatch.setattr(scores_room, "MAX_SCORED", 20)
    model = _model(n=60, noise="norm(0, 1)")
    told = contents(model)
    assert told["data"]["shown"] == 30 == len(told["slices"][0]["data"]["x"])
    assert told["scores"]["scored"] == 20
    path = write_report(model, tmp_path / "report.html")
    assert "20 of the 60 samples" in path.read_text(encoding="utf-8")


def test_too_many_places_leave_the_scores_out(monkeypatch):
    monkeypatch.setattr(scores_room, "MAX_PLACES", 10)
    assert "10 distinct inputs" in contents(_model())["scores"]["missing"]


def test_correlated_noise_leaves_the_scores_out_and_says_why(tmp_path):
    X = np.arange(4.0)[:, None]
    scale = np.eye(4) + 0.2 * np.eye(4, k=1)
    model = WienerKernelRegressor(RBF(1.0), noise=GAMMA, tuning=None).fit(X, X[:, 0], noise_scale=scale)
    path = write_report(model, tmp_path / "report.html")
    assert "independent noise" in path.read_text(encoding="utf-8")
    assert contents(model)["data"]["y"] == [pytest.approx([0.0, 1.0, 2.0, 3.0])]


def test_each_input_has_a_slice_through_one_sample():
    model = _model(n=30, d=3, noise="norm(0, 1)")
    told = contents(model, input_names=["a", "b", "c"])
    assert [part["input"] for part in told["slices"]] == ["a", "b", "c"]
    base = {item["name"]: item["value"] for part in told["slices"] for item in part["base"]}
    rows = model.posterior_.smoother.places
    assert np.min(np.abs(rows - [base["a"], base["b"], base["c"]]).max(axis=1)) < 1e-5
    part = told["slices"][1]
    grid = np.column_stack([np.full(61, base["a"]), part["x"], np.full(61, base["c"])])
    np.testing.assert_allclose(part["mean"][0], model.predict(grid), rtol=1e-3, atol=1e-4)


def test_samples_on_the_slice_are_near_and_others_are_not():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [1.0, 50.0]])
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 1)", tuning=None).fit(X, np.arange(4.0))
    assert contents(model)["slices"][0]["data"]["nearness"] == [1.0, 1.0, 1.0, 0.0]


def test_of_many_inputs_those_that_matter_are_shown():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 11))
    y = np.sin(3 * X[:, 9]) + np.cos(3 * X[:, 4])
    model = WienerKernelRegressor(RBF(1.5), noise="norm(0, 0.1)", tuning=None).fit(X, y)
    told = contents(model)
    names = [part["input"] for part in told["slices"]]
    assert len(names) == 8
    assert "the 8 inputs along which" in page(told)
    assert {"x5", "x10"} <= set(names)


def test_outputs_share_the_laws_but_not_the_means():
    model = _model(outputs=2)
    told = contents(model, target_name=["u", "v"])
    part = told["slices"][0]
    grid = np.array(part["x"])[:, None]
    assert told["targets"] == ["u", "v"]
    assert len(told["data"]["y"]) == 2
    exact = model.predict_quantiles(grid, [0.95], of="observation")[:, 1, 0]
    np.testing.assert_allclose(
        np.add(part["mean"][1], part["tubes"]["observation"]["high"]), exact, atol=2e-5
    )


def test_names_that_the_model_knows_are_the_input_names():
    model = _model(n=3, d=2, noise="norm(0, 1)")
    model.feature_names_in_ = np.array(["depth", "age"], dtype=object)
    assert contents(model)["inputs"] == ["depth", "age"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_names": ["a", "b"]}, "input_names must have 1"),
        ({"target_name": ["a", "b"]}, "target_name must have 1"),
    ],
)
def test_wrong_number_of_names_is_an_error(options, message):
    with pytest.raises(ValueError, match=message):
        contents(_model(n=3, noise="norm(0, 1)"), **options)


@pytest.mark.parametrize(
    ("n", "scale", "noise"),
    [
        (1, 1.0, "norm(0, 1)"),
        (2, 1e-9, "norm(0, 1)"),
        (6, 1e9, GAMMA),
        (4, 1.0, [-0.3, 0.1, 0.2, 0.5]),
        (8, 1.0, Mixture(["norm(0, 0.1)", "norm(0, 3)"], [0.9, 0.1])),
        (8, 1.0, stats.lognorm(0.5)),
    ],
)
def test_ugly_models_have_reports_too(tmp_path, n, scale, noise):
    model = _model(n=n, scale=scale, noise=noise)
    path = write_report(model, tmp_path / "report.html")
    told = _data(path)
    assert told["summary"]["samples"] == n
    assert all(np.isfinite(told["slices"][0]["mean"][0]))


def test_duplicates_and_a_constant_column_have_a_report():
    X = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 5.0]])
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 1)", tuning=None).fit(X, [1.0, 1.0, 1.0])
    told = contents(model)
    assert told["summary"]["places"] == 2
    assert np.ptp(told["slices"][0]["x"]) > 0


def test_the_law_of_the_estimate_under_discrete_noise_has_no_density():
    model = _model(n=3, noise=[-0.3, 0.1, 0.2, 0.5])
    densities = contents(model)["slices"][0]["densities"]
    assert densities["estimate"] is None
    assert densities["observation"] is not None


def test_hostile_names_stay_text(tmp_path):
    path = write_report(
        _model(n=4, d=2),
        tmp_path / "report.html",
        title=HOSTILE,
        input_names=[HOSTILE, "b"],
        target_name=HOSTILE,
    )
    outline = _outline(path)
    assert [attrs.get("type") for tag, attrs in outline.tags if tag == "script"] == ["application/json", None]
    assert HOSTILE in "".join(outline.words)
    told = _data(path)
    assert told["title"] == told["inputs"][0] == told["targets"][0] == HOSTILE


def test_the_file_is_small_and_refers_to_nothing_outside(tmp_path):
    path = write_report(_model(n=60, d=3, outputs=2, noise="norm(0, 1)"), tmp_path / "report.html")
    assert path.stat().st_size < 1_000_000
    for _, attrs in _outline(path).tags:
        for name in ("src", "href", "data", "action"):
            assert (attrs.get(name) or "data:").startswith("data:")
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|@import|url\((?!#)", text)


def test_numbers_are_in_the_page_without_scripts(told, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page(told), encoding="utf-8")
    words = " ".join(_outline(path).words)
    assert f"{told['slices'][0]['mean'][0][60]:.4g}".replace("-", "−") in words
    assert f"{told['scores']['summary']['crps']:.4g}" in words
    assert "need JavaScript" in words
    assert "of the variance" in words


def test_a_failed_report_leaves_no_file_behind(tmp_path):
    folder = tmp_path / "report.html"
    folder.mkdir()
    with pytest.raises(ValueError, match=r"report\.html: it exists and is not a regular file"):
        write_report(_model(n=3, noise="norm(0, 1)"), folder)
    assert [item.name for item in tmp_path.iterdir()] == ["report.html"]


def test_an_unfitted_model_has_no_report(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        write_report(WienerKernelRegressor(tuning=None), tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    model = _model(n=30, d=2, outputs=2, noise="norm(0.5, 1)")
    path = write_report(model, folder / "report.html", title=HOSTILE, input_names=[HOSTILE, "b"])
    return path.as_uri()


@pytest.fixture
def opened(chromium, address):
    set_width(chromium, 1280)
    set_color_scheme(chromium, "light")
    console_errors(chromium), requested_addresses(chromium)
    chromium.get(address)
    return chromium


def _density(page, number=0):
    return [
        path.get_attribute("d")
        for path in page.find_elements("css selector", ".density path.exact")[3 * number :]
    ]


def test_page_opens_without_complaint_and_asks_for_nothing(opened, address):
    assert len(opened.find_elements("css selector", ".tubes svg path.area")) == 6
    assert len(_density(opened)) == 6
    assert console_errors(opened) == []
    assert requested_addresses(opened) == [address]
    assert opened.execute_script("return window.hacked") is None
    assert HOSTILE in opened.find_element("css selector", "h1").text


def test_slider_chooses_the_density_by_keyboard(opened):
    slider = opened.find_elements("css selector", ".chooser input")[0]
    before, label, others = _density(opened)[:3], slider.get_attribute("aria-valuetext"), _density(opened, 1)
    slider.send_keys("\ue014")  # right arrow
    assert all(new != old for new, old in zip(_density(opened)[:3], before, strict=True))
    assert slider.get_attribute("aria-valuetext") != label
    assert _density(opened, 1) == others


def test_click_on_the_curve_chooses_the_place(opened):
    from selenium.webdriver import ActionChains

    slider = opened.find_elements("css selector", ".chooser input")[0]
    plot = opened.find_elements("css selector", ".tubes svg")[0]
    ActionChains(opened).move_to_element_with_offset(plot, -200, 0).click().perform()
    assert int(slider.get_property("value")) < int(slider.get_attribute("max")) / 2


def test_pointing_at_the_curve_shows_its_numbers(opened):
    from selenium.webdriver import ActionChains

    tip = opened.find_element("id", "tip")
    assert not tip.is_displayed()
    for selector, words in [
        (".tubes svg", "mean"),
        (".density svg", "density"),
        (".causes svg", "%"),
        ("#pit svg", "PIT"),
    ]:
        plot = opened.find_elements("css selector", selector)[0]
        opened.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
        ActionChains(opened).move_to_element(plot).perform()
        assert tip.is_displayed()
        assert words in tip.text
    ActionChains(opened).move_to_element(opened.find_element("css selector", "h1")).perform()
    assert not tip.is_displayed()


def test_theme_follows_the_system_and_the_button(opened):
    def background():
        return opened.execute_script("return getComputedStyle(document.body).backgroundColor")

    light = background()
    opened.find_element("id", "theme").click()
    dark = background()
    assert dark != light
    set_color_scheme(opened, "dark")
    opened.find_element("id", "theme").click()
    assert background() == light
    opened.refresh()
    assert background() == dark


def test_output_can_be_chosen(opened):
    from selenium.webdriver.support.ui import Select

    before = opened.find_element("css selector", ".tubes path.line.mean").get_attribute("d")
    Select(opened.find_element("id", "output")).select_by_visible_text("y2")
    assert opened.find_element("css selector", ".tubes path.line.mean").get_attribute("d") != before


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_page_is_never_wider_than_the_screen(opened, width):
    set_width(opened, width)
    opened.refresh()
    opened.execute_script("document.querySelector('details').open = true")
    assert overflow(opened) == 0


def test_print_has_the_tables_open(opened):
    opened.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert opened.find_element("css selector", "details table").is_displayed()
    assert len(opened.execute_cdp_cmd("Page.printToPDF", {})["data"]) > 10_000


def test_tables_remain_without_scripts(opened):
    opened.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        opened.refresh()
        assert not opened.find_element("id", "theme").is_displayed()
        assert opened.find_element("css selector", ".notice").is_displayed()
        assert opened.find_element("css selector", ".tiles").is_displayed()
    finally:
        opened.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize(
    ("std", "reading"), [(0.05, "intervals are too narrow"), (3.0, "intervals are too wide")]
)
def test_the_scores_are_read_for_the_user(std, reading):
    """Both rows of coverage and the spread of the PIT say what is wrong; for the true noise nothing is."""
    X = np.linspace(0, 10, 80)[:, None]
    y = np.sin(X[:, 0]) + np.random.default_rng(0).normal(scale=0.4, size=80)
    texts = [
        page(contents(WienerKernelRegressor(RBF(1.5), noise=f"norm(0, {value})", tuning=None).fit(X, y)))
        for value in (std, 0.4)
    ]
    assert [text.count(reading) for text in texts] == [3, 0]
    assert texts[1].count("within chance") == 4
