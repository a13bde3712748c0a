"""Names and colors of all figures: one per cause, and apart for every reader."""

from itertools import pairwise

import numpy as np
import pytest

from wienerkernel import RBF, TubeDisplay, WienerKernelRegressor
from wienerkernel.evaluation.report import contents, page
from wienerkernel.palette import CAUSES, COLORS, LAWS, LIGHT
from wienerkernel.posterior.separate import causes

PAGES = ("#ffffff", "#14171c")


def contrast(one, other):
    """Contrast ratio of the Web Content Accessibility Guidelines; it depends on lightness only, not on hue."""

    def luminance(color):
        rgb = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.fixture(scope="module")
def model():
    X = np.linspace(0, 6, 8)[:, None]
    return WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.3)", tuning=None).fit(X, np.sin(X[:, 0]))


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_neighboring_tubes_differ_in_lightness_and_lines_stand_out_from_the_page(theme):
    for inner, outer in pairwise(LAWS):
        assert contrast(COLORS[inner][theme], COLORS[outer][theme]) > 1.3
    for name in (*(f"{law}-line" for law in LAWS), "mean", "truth", "text"):
        assert contrast(COLORS[name][theme], PAGES[theme]) > 3


def test_tubes_are_nested_and_named_by_cause(model):
    display = TubeDisplay.from_estimator(model, np.linspace(-2, 8, 50), width=2.0)
    _, labels = display.ax_.get_legend_handles_labels()
    noise, unexplored, observation = (CAUSES[cause] for cause in causes(model.posterior_))
    assert labels == [noise, f"+ {unexplored}", f"+ {observation}", "mean"]
    widths = [np.ptp(tube.get_paths()[0].vertices[:, 1]) for tube in display.ax_.collections]
    orders = [tube.get_zorder() for tube in display.ax_.collections]
    assert widths == sorted(widths)
    assert orders == sorted(orders, reverse=True), "a wider tube would hide a narrower one"


def test_tubes_of_a_transformed_response_are_on_the_transformed_scale():
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 2.0, 4.0])
    options = {"noise": "norm(0, 0.2)", "tuning": None}
    of_y = WienerKernelRegressor(RBF(1.0), transform="log", **options).fit(X, y)
    of_log = WienerKernelRegressor(RBF(1.0), **options).fit(X, np.log(y))
    one, other = (TubeDisplay.from_estimator(model, X) for model in (of_y, of_log))
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.uncertainty.total, other.uncertainty.total)


def test_the_report_takes_names_and_colors_from_the_one_table(model):
    html = page(contents(model))
    for name, (light, dark) in COLORS.items():
        assert f"--{name}: light-dark({light}, {dark});" in html
        assert html.count(light) == 1
    for cause in causes(model.posterior_):
        assert CAUSES[cause] in html
    assert LIGHT["mean"] == COLORS["mean"][0]


def test_unsorted_points_make_the_same_tubes_and_named_columns_label_the_axis(model):
    x = np.random.default_rng(0).uniform(0, 6, 30)
    display = TubeDisplay.from_estimator(model, x)
    assert np.array_equal(display.x, np.sort(x))
    assert np.array_equal(display.mean, model.predict(np.sort(x)[:, None]))
    assert display.ax_.get_xlabel() == ""
    model.feature_names_in_ = np.array(["time"], dtype=object)
    try:
        assert TubeDisplay.from_estimator(model, x).ax_.get_xlabel() == "time"
    finally:
        del model.feature_names_in_


def test_a_model_of_two_inputs_has_no_tubes_over_one():
    two = WienerKernelRegressor(RBF(1.0), tuning=None).fit([[0.0, 1.0], [1.0, 0.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match="one input, got 2"):
        TubeDisplay.from_estimator(two, [0.0, 1.0])
