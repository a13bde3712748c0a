"""What notebooks show: tables in HTML, densities as SVG, names of columns."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from scipy import stats

from wienerkernel import RBF, WienerKernelRegressor
from wienerkernel.notebook import density_svg, table_html

X = np.linspace(0, 6, 8)[:, None]


@pytest.fixture(scope="module")
def model():
    return WienerKernelRegressor(RBF(1.0), noise="gamma(2, scale=0.2)", tuning=None).fit(X, np.sin(X[:, 0]))


def cells(html):
    """Texts of the rows of the last table."""
    table = ET.fromstring(re.search(r"<table>(?!.*<table>).*</table>", html, re.DOTALL)[0])
    return [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]


def test_cells_are_escaped_and_images_are_not():
    html = table_html(["<a>"], [["1 < 2"], ["<svg></svg>"]], "x & y")
    assert "&lt;a&gt;" in html
    assert "1 &lt; 2" in html
    assert "<td><svg></svg></td>" in html
    assert "x &amp; y" in html


def test_the_image_of_a_density_has_its_shape():
    y = np.linspace(-3, 3, 61)
    polygon = ET.fromstring(density_svg(y, stats.norm().pdf(y))).find("polygon")
    points = np.array([point.split(",") for point in polygon.get("points").split()], dtype=float)
    assert points[:, 0].min() == 0
    assert points[np.argmin(points[:, 1]), 0] == pytest.approx(60, abs=1)
    np.testing.assert_allclose(points[1:-1, 1], points[1:-1, 1][::-1], atol=0.11)


@pytest.mark.parametrize("of", ["estimate", "function", "observation"])
def test_a_distribution_shows_its_numbers(model, of):
    law = model.predict_distribution([[0.5], [2.5]], of)
    mean, std = law.mean(), law.std()
    assert f"{mean[1]:.4g} ± {std[1]:.4g}>" in repr(law)
    rows = cells(law._repr_html_())
    assert rows[0] == ["point", "mean", "std", "5 %", "95 %", "density"]
    assert rows[2][1:5] == [f"{x[1]:.4g}" for x in (mean, std, law.ppf(0.05), law.ppf(0.95))]
    assert law._repr_html_().count("<svg") == 2


def test_many_points_are_cut_and_discrete_laws_have_no_density(model):
    law = model.predict_distribution(np.linspace(0, 6, 50)[:, None])
    assert repr(law).endswith(", ...>")
    assert law._repr_html_().count("<svg") == 5
    assert "50 points; the first 5 are shown" in law._repr_html_()
    many = model.predict_distribution(np.linspace(0, 6, 1000)[:, None])._repr_html_()
    assert cells(many)[0] == ["point", "mean", "std"]
    coin = WienerKernelRegressor(RBF(1.0), noise=[0.0, 1.0], tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
    assert "<svg" not in coin.predict_distribution([[0.5]])._repr_html_()


@pytest.mark.parametrize("noise", ["norm(0, 0.3)", "auto"])
def test_several_outputs_and_transforms_are_shown(noise):
    y = np.column_stack([2 + np.sin(X[:, 0]), 3 + np.cos(X[:, 0])])
    fitted = WienerKernelRegressor(noise=noise).fit(X, y)
    law = fitted.predict_distribution([[1.0]], "observation")
    assert "1 point, 2 outputs" in repr(law)
    assert [row[0] for row in cells(law._repr_html_())[1:]] == ["0, output 0", "0, output 1"]
    rows = cells(fitted._repr_mimebundle_()["text/html"])
    separate = noise == "auto"
    assert [row[0] for row in rows].count("kernel") == 1 + separate
    assert [["output 0", ""] in rows, ["output 1", ""] in rows] == [separate] * 2


def test_a_constant_level_is_not_said_to_vary():
    x = np.linspace(0, 6, 40)
    y = np.sin(x) + 0.3 * np.random.default_rng(0).normal(size=40)
    model = WienerKernelRegressor(noise="auto").fit(x[:, None], y)
    assert not model.posterior_.level.varies
    rows = dict(cells(model._repr_mimebundle_()["text/html"])[1:])
    assert rows["noise level"].startswith("constant (log evidence -")


def test_a_model_shows_what_was_found():
    model = WienerKernelRegressor()
    assert "<th>found</th>" not in model._repr_mimebundle_()["text/html"]
    model.fit(X, np.sin(X[:, 0]) + 0.1 * np.cos(9 * X[:, 0]))
    html = model._repr_mimebundle_()["text/html"]
    rows = dict(cells(html)[1:])
    assert rows["noise"].startswith("norm(scale=")
    for name, value in model.tuning_result_.parameters.items():
        assert rows[name] == f"{value:.4g}"
    assert cells(model._repr_html_()) == cells(html)


def test_score_reports_and_comparisons_are_tables(model):
    from wienerkernel import compare

    report = model.score_report()
    rows = {name: rest for name, *rest in cells(report._repr_html_())[1:]}
    assert rows["coverage_90"] == [f"{report.coverage(0.9):.3f}", "0.900"]
    found = compare({"one": model, "other": model})
    assert [row[0] for row in cells(found._repr_html_())] == ["model", "one", "other"]
