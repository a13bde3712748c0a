"""Names and colors of all figures: one per cause, and apart for every reader."""

import sys
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from wienerkernel import RBF, Huber, ScoreDisplay, TubeDisplay, WienerKernelRegressor
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


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


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


def test_tubes_of_a_transformed_response_are_drawn_in_its_units():
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 2.0, 4.0])
    options = {"noise": "norm(0, 0.2)", "tuning": None}
    of_y = WienerKernelRegressor(RBF(1.0), transform="log", **options).fit(X, y)
    of_log = WienerKernelRegressor(RBF(1.0), **options).fit(X, np.log(y))
    one, other = (TubeDisplay.from_estimator(model, X) for model in (of_y, of_log))
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.uncertainty.total, other.uncertainty.total)
    drawn, logs = ([*display.ax_.lines, *display.ax_.collections] for display in (one, other))
    for mine, its in zip(drawn, logs, strict=True):
        mine, its = (
            found.get_ydata() if hasattr(found, "get_ydata") else found.get_paths()[0].vertices[:, 1]
            for found in (mine, its)
        )
        np.testing.assert_allclose(mine, np.exp(its))
    legends = [display.ax_.get_legend() for display in (one, other)]
    assert [legend.get_texts()[3].get_text() for legend in legends] == ["mean, transformed back", "mean"]
    assert legends[0].get_title().get_text() == "± 1 standard deviation"
    assert one.ax_.get_ylabel() == "y"


def test_the_report_takes_names_and_colors_from_the_one_table(model):
    html = page([contents(model)])
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
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("x", "y")
    model.feature_names_in_ = np.array(["time"], dtype=object)
    try:
        assert TubeDisplay.from_estimator(model, x).ax_.get_xlabel() == "time"
    finally:
        del model.feature_names_in_


def test_the_samples_of_the_model_are_shown_by_default(model):
    display = TubeDisplay.from_estimator(model)
    x, y = display.data
    np.testing.assert_allclose(y, np.sin(x))
    assert (display.x[0], display.x[-1]) == (0, 6)
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()][-2:] == ["mean", "data"]


@pytest.fixture(scope="module")
def frame():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.uniform(0, 6, 40), "b": rng.uniform(-1, 1, 40)})
    return table, pd.Series(np.sin(table.a) + table.b, name="height")


def test_any_input_of_several_can_be_the_axis(frame):
    X, y = frame
    model = WienerKernelRegressor(RBF([1.0, 2.0]), noise="norm(0, 0.1)", tuning=None).fit(X, y)
    display = TubeDisplay.from_estimator(model, X, y, feature="b", at=[2.0, 0.0])
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("b", "height")
    line = np.column_stack([np.full(len(display.x), 2.0), display.x])
    np.testing.assert_allclose(display.mean, model.posterior_.mean(line))
    np.testing.assert_array_equal(display.data[0], X.b)
    onto = np.column_stack([np.full(len(X), 2.0), X.b])
    residuals = y - model.posterior_.mean(X.to_numpy())
    np.testing.assert_allclose(display.data[1], model.posterior_.mean(onto) + residuals)
    assert "partial residuals" in [text.get_text() for text in display.ax_.get_legend().get_texts()]
    middle = TubeDisplay.from_estimator(model, feature=1)
    nearest = np.unique([model.posterior_.mean(np.array([[a, display.x[0]]])) for a in X.a])
    assert np.min(np.abs(nearest - middle.mean[0])) < 1e-12
    for wrong in ("c", 2, -1):
        with pytest.raises(ValueError, match="feature must be"):
            TubeDisplay.from_estimator(model, feature=wrong)
    with pytest.raises(ValueError, match="at must have shape"):
        TubeDisplay.from_estimator(model, at=[1.0])


def test_pipelines_are_shown_in_units_of_their_inputs(frame):
    X, y = frame
    steps = StandardScaler(), WienerKernelRegressor(RBF([1.0, 2.0]), noise="norm(0, 0.1)", tuning=None)
    pipeline = make_pipeline(*steps).fit(X, y)
    display = TubeDisplay.from_estimator(pipeline, X, y, feature="a", at=[0.0, 0.5])
    line = X.iloc[[0] * len(display.x)].assign(a=display.x, b=0.5)
    np.testing.assert_allclose(display.mean, pipeline.predict(line))
    assert display.ax_.get_xlabel() == "a"
    with pytest.raises(ValueError, match="needs X"):
        TubeDisplay.from_estimator(pipeline)
    scores = ScoreDisplay.from_estimator(pipeline, X, y)
    expected = steps[1].score_report(steps[0].transform(X), y)
    np.testing.assert_array_equal(scores.report.pit, expected.pit)


@pytest.mark.parametrize("noise", ["norm(0, 0.3)", "auto"])
def test_every_output_can_be_shown(noise):
    X = np.linspace(0, 6, 12)[:, None]
    y = np.column_stack([np.sin(X[:, 0]), 100 + np.cos(X[:, 0])])
    model = WienerKernelRegressor(noise=noise, tuning="likelihood").fit(X, y)
    display = TubeDisplay.from_estimator(model, output=1)
    assert display.ax_.get_ylabel().startswith("y2")
    assert display.mean.shape == display.uncertainty.total.shape == display.x.shape
    if noise != "auto":
        np.testing.assert_allclose(display.data[1], y[:, 1])


def test_displays_draw_on_given_axes(model):
    figure, axes = plt.subplots(2, 3)
    assert TubeDisplay.from_estimator(model, ax=axes[0, 0]).ax_ is axes[0, 0]
    assert model.score_report().plot(ax=axes[1]).axes_[2] is axes[1, 2]
    assert ScoreDisplay.from_estimator(model, ax=axes[1]).axes_[0] is axes[1, 0]
    plt.close(figure)


def test_without_matplotlib_the_message_says_what_to_install(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'wienerkernel\[plot\]'"):
        TubeDisplay.from_estimator(model, [0.0, 1.0])


def test_other_estimators_are_refused():
    with pytest.raises(TypeError, match="a pipeline that ends in one, got LinearRegression"):
        TubeDisplay.from_estimator(LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]))


def test_models_that_are_not_linear_in_y_show_their_samples():
    x = np.linspace(0, 6, 12)[:, None]
    model = WienerKernelRegressor(RBF(1.0), loss=Huber(1.0, n_draws=50), noise="norm(0, 0.1)", tuning=None)
    display = TubeDisplay.from_estimator(model.fit(x, np.sin(x[:, 0])))
    np.testing.assert_array_equal(display.data[0], x[:, 0])
    np.testing.assert_allclose(display.data[1], np.sin(x[:, 0]))


def test_wrong_shapes_are_refused_in_a_sentence(model):
    with pytest.raises(ValueError, match="X must have the 1 inputs"):
        TubeDisplay.from_estimator(model, np.zeros((3, 2)))
    with pytest.raises(ValueError, match="output must be an index from 0 to 0, got 1"):
        TubeDisplay.from_estimator(model, output=1)
    with pytest.raises(ValueError, match="ax must be three Axes, got 1"):
        ScoreDisplay.from_estimator(model, ax=plt.subplots()[1])
