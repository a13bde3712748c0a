"""What the paper states, as tests: its lemmas, its example to many digits, its figures."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from helpers import untuned
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from typer.testing import CliRunner

from wienerkernel import (
    RBF,
    Expansion,
    Exponential,
    FeatureMap,
    Matern,
    OrthogonalBasis,
    Periodic,
    Polynomial,
    RationalQuadratic,
    WienerKernelRegressor,
)
from wienerkernel.cli.app import app
from wienerkernel.experiments import paper
from wienerkernel.experiments.calibration import calibrate
from wienerkernel.experiments.paper import Experiment
from wienerkernel.experiments.system import kernel, truth

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "paper_example.json").read_text())


@pytest.mark.parametrize("case", REFERENCE["gaussian"], ids=lambda c: f"{c['N_x']}x{c['N_sam']} at {c['x']}")
def test_gaussian_example_to_ten_digits(case):
    model = Experiment(case["N_x"], case["N_sam"], "norm(0, 1)", seed=0).fit()
    u = model.uncertainty([[case["x"]]])
    computed = {"sigma_WK": u.noise, "sigma_GP": u.epistemic, "sigma_GP_tilde": u.total, "P": u.model}
    for name, variance in computed.items():
        assert np.sqrt(variance[0]) == pytest.approx(float(case[name]), abs=1e-10), name


def test_gamma_example_to_ten_digits():
    case = REFERENCE["gamma"]
    model = Experiment(case["N_x"], case["N_sam"], "gamma(0.25, scale=2)", seed=0).fit()
    x = np.array([[case["x"]]])
    a = model.posterior_.smoother.evaluate(x)[1][0]
    np.testing.assert_allclose(a, np.array(case["a"], dtype=float), atol=1e-12)
    Y = model.predict_distribution(x)
    for name, value in [
        ("variance", Y.var()),
        ("std", Y.std()),
        ("skewness", Y.skewness()),
        ("excess_kurtosis", Y.kurtosis()),
    ]:
        assert value[0] == pytest.approx(float(case[name]), abs=1e-10), name
    u = model.uncertainty(x)
    assert np.sqrt(u.epistemic[0]) == pytest.approx(float(case["sigma_GP"]), abs=1e-10)
    assert np.sqrt(u.model[0]) == pytest.approx(float(case["P"]), abs=1e-10)
    for level, value in case["quantiles_minus_mu"].items():
        assert Y.ppf(float(level))[0] - Y.mean()[0] == pytest.approx(float(value), abs=1e-9)


class TestLemma1:
    """The chaos coefficients of W minimize the objective (10)."""

    rho2 = 0.7

    @pytest.fixture(params=["two terms", "four terms", "not normalized"])
    def noise(self, request):
        if request.param == "two terms":
            return Expansion(OrthogonalBasis("gamma(0.25, scale=2)", 2), [0.5, 1.0])
        basis = OrthogonalBasis("uniform(-1, 2)", 4, normalized=request.param == "four terms")
        return Expansion(basis, [0.3, 1.0, -0.4, 0.2])

    @pytest.fixture
    def problem(self, noise):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(5, 1)), rng.normal(size=5)
        phi = lambda x: np.column_stack([np.ones(len(x)), x, np.sin(3 * x)])
        model = untuned(X, y, FeatureMap(phi), noise=noise, ridge=self.rho2, trend=None)
        return phi(X), y, noise, model.feature_weights()

    def objective(self, coefficients, features, y, noise):
        """Equation (10) by quadrature over all germs at once: no algebra of expansions is used."""
        n, L = len(y), noise.basis.size
        nodes, weights = noise.basis.quadrature(L)
        grid = np.stack(np.meshgrid(*[nodes] * n, indexing="ij"), axis=-1).reshape(-1, n)
        probability = np.prod(np.stack(np.meshgrid(*[weights] * n, indexing="ij"), axis=-1), axis=-1).ravel()
        phi = noise.basis(grid)  # (points, n, L)
        psi = np.concatenate(
            [np.ones((len(grid), 1)), phi[..., 1:].reshape(len(grid), -1)], axis=1
        )  # paper's order
        W = psi @ coefficients.T  # (points, n_phi)
        M = phi @ noise.coefficients  # (points, n)
        loss = np.sum((y - M - W @ features.T) ** 2, axis=1) + self.rho2 * np.sum(W**2, axis=1)
        return loss @ probability

    def test_perturbing_any_coefficient_raises_the_objective(self, problem):
        features, y, noise, W = problem
        best = self.objective(W.coefficients, features, y, noise)
        for index in np.ndindex(W.coefficients.shape):
            for step in (-1e-3, 1e-3):
                other = W.coefficients.copy()
                other[index] += step
                assert self.objective(other, features, y, noise) > best

    def test_weights_and_predictions_are_one_random_variable(self):
        phi = lambda x: np.column_stack([np.ones(len(x)), x])
        X, Z = np.linspace(-1, 1, 4)[:, None], np.array([[0.3], [2.0]])
        model = untuned(X, X[:, 0], FeatureMap(phi, scale=1.3), noise="gamma(2)", trend=None)
        W, Y = model.feature_weights(), model.predict_distribution(Z).chaos()
        np.testing.assert_allclose(phi(Z) @ W.coefficients, Y.coefficients, atol=1e-12)


class TestLemma2:
    """Moments of the prediction from its chaos coefficients."""

    @pytest.mark.parametrize("normalized", [True, False])
    def test_moments_of_the_chaos_form_are_those_of_the_law(self, normalized):
        noise = Expansion(OrthogonalBasis("beta(2, 3)", 3, normalized=normalized), [0.2, 1.0, 0.5])
        X = np.repeat(np.linspace(-5, 5, 4), 2)[:, None]
        model = untuned(X, truth(X[:, 0]), kernel(), noise=noise, trend=None)
        Z = np.array([[0.0], [1.7]])
        Y = model.predict_distribution(Z)
        form = Y.chaos()
        assert form.coefficients.shape == (2, 1 + 8 * 2)
        np.testing.assert_allclose(form.mean(), Y.mean(), rtol=1e-12)
        np.testing.assert_allclose(form.var(), Y.var(), rtol=1e-10)
        np.testing.assert_allclose(np.diagonal(form.cov()), Y.var(), rtol=1e-10)

    def test_realizations_of_the_chaos_form_are_refits_on_corrected_data(self):
        """Yhat(x; omega) is the prediction from y minus the realized noise (eq. 12)."""
        X, Z = np.linspace(-5, 5, 5)[:, None], np.array([[0.4]])
        y = truth(X[:, 0]) + 1.0
        model = untuned(X, y, kernel(), noise="gamma(0.25, scale=2)", trend=None)
        germ = np.array([0.1, 0.7, 0.0, 2.0, 0.3])  # the germ of the two-term expansion is M itself
        refit = untuned(X, y - germ, kernel(), noise="norm(0, 1)", trend=None)
        np.testing.assert_allclose(model.predict_distribution(Z).chaos()(germ), refit.predict(Z), rtol=1e-10)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), n=st.integers(1, 30), repeats=st.integers(1, 60), s2=st.floats(1e-2, 1e2))
def test_lemma_3_noise_variance_is_at_most_that_of_the_mean_of_the_repeats(seed, n, repeats, s2):
    rng = np.random.default_rng(seed)
    X, x_bar = rng.normal(size=(n, 1)), rng.normal(size=(1, 1))
    model = WienerKernelRegressor(
        RBF(1.0), noise=stats.norm(scale=np.sqrt(s2)), ridge=float(rng.uniform(0.05, 3)), tuning=None
    )
    model.fit(np.vstack([X, np.repeat(x_bar, repeats, axis=0)]), np.zeros(n + repeats))
    assert model.uncertainty(x_bar).noise[0] <= s2 / repeats * (1 + 1e-9)


RANDOM_KERNELS = [
    lambda r: float(r.uniform(0.1, 9)) * RBF(r.uniform(0.2, 5, size=2)),
    lambda r: float(r.uniform(0.1, 9)) * Exponential(float(r.uniform(0.2, 5))),
    lambda r: Matern(r.uniform(0.2, 5, size=2), nu=1.5) + 0.1 * Periodic(1.0, 2.0),
    lambda r: RationalQuadratic(float(r.uniform(0.2, 5)), alpha=0.7) * Matern(1.0, nu=2.5),
    lambda r: Polynomial(2, offset=float(r.uniform(0.1, 3))),
]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 25),
    make=st.sampled_from(RANDOM_KERNELS),
    std=st.floats(0.05, 5),
    trend=st.sampled_from([None, "constant"]),
)
def test_noise_variance_never_exceeds_epistemic_variance(seed, n, make, std, trend):
    """sigma_GP^2 = P2 + V, which settles the question that the paper leaves open."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))[rng.integers(0, n, size=n)]
    Z = rng.normal(scale=2.0, size=(7, 2))
    k = make(rng)
    model = untuned(X, rng.normal(size=n), k, noise=stats.norm(scale=std), trend=trend)
    u = model.uncertainty(Z)
    sigma_gp2 = model.posterior_.smoother.mean_and_variance(Z)[1]
    np.testing.assert_allclose(u.noise + u.model, sigma_gp2, rtol=1e-8, atol=1e-11 * k.diag(Z).max())
    assert np.all(u.noise <= sigma_gp2 * (1 + 1e-9) + 1e-12)


def test_with_another_ridge_the_parts_still_give_the_mean_squared_error():
    """Over functions from the prior and noise: E (f(x) - a'y)^2 = P2 + V for any ridge."""
    X, x = np.linspace(-2, 2, 4)[:, None], np.array([[0.7]])
    k, s2 = 2.0 * RBF(1.0), 0.5
    model = untuned(X, np.zeros(4), k, noise=stats.norm(scale=np.sqrt(s2)), ridge=3.0, trend=None)
    rng = np.random.default_rng(0)
    joint = np.linalg.cholesky(k(np.vstack([X, x]), np.vstack([X, x])) + 1e-12 * np.eye(5))
    f = rng.normal(size=(400_000, 5)) @ joint.T
    y = f[:, :4] + np.sqrt(s2) * rng.normal(size=(400_000, 4))
    error = np.mean((f[:, 4] - y @ model.posterior_.smoother.evaluate(x)[1][0]) ** 2)
    assert error == pytest.approx(model.uncertainty(x).epistemic[0], rel=0.01)


def test_the_prediction_has_the_opposite_skew_of_the_noise():
    model = Experiment(5, 1, "gamma(0.25, scale=2)", seed=0).fit()
    assert np.all(model.predict_distribution(np.linspace(-5, 5, 5)[:, None]).skewness() < 0)
    assert model.noise_.cumulants(3)[2] > 0


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """The folder that the command writes, and what it says."""
    out = tmp_path_factory.mktemp("paper") / "out"
    result = CliRunner().invoke(app, ["paper", "--out", str(out)])
    assert result.exit_code == 0, result.output
    return out, result.output.replace("\n", "")


def test_the_command_reproduces_the_paper_as_files(reproduced):
    out, said = reproduced
    names = {
        f"{name}.{suffix}"
        for name in ("figure1", "figure2", "calibration")
        for suffix in ("csv", "png", "svg")
    }
    assert {path.name for path in out.iterdir()} == names
    assert all(path.stat().st_size > 200 for path in out.iterdir())
    assert all(name in said for name in names)
    rows = list(csv.DictReader((out / "figure1.csv").read_text().splitlines()))
    panels = {(row["N_x"], row["N_sam"]) for row in rows}
    assert len(panels) == 9
    values = {(int(r["N_x"]), int(r["N_sam"]), float(r["x"])): r for r in rows}
    for case in REFERENCE["gaussian"]:
        row = values[case["N_x"], case["N_sam"], case["x"]]
        for name in ("sigma_WK", "sigma_GP", "sigma_GP_tilde", "P"):
            assert float(row[name]) == pytest.approx(float(case[name]), abs=1e-10)


def test_the_panels_of_figure_1_share_a_legend_and_labels():
    panels = [Experiment(n_x, n_sam, paper.NORMAL, 0) for n_sam in paper.N_REPEATS for n_x in paper.N_PLACES]
    figure = paper._figure_tubes([(panel, panel.fit()) for panel in panels])
    assert len(figure.legends) == 1
    assert all(ax.get_legend() is None for ax in figure.axes)
    assert [ax.get_xlabel() for ax in figure.axes] == [""] * 6 + ["$x_k$"] * 3
    assert [ax.get_ylabel() for ax in figure.axes] == ["$x_{k+1}$", "", ""] * 3


def test_the_same_seed_gives_the_same_numbers(reproduced, tmp_path, monkeypatch):
    for name in ("save_figure", "_figure_tubes", "_figure_densities", "_figure_calibration"):
        monkeypatch.setattr(paper, name, lambda *_: ())
    files = [path for _, path in paper.reproduce(tmp_path)]
    assert len(files) == 3
    for path in files:
        assert path.read_text() == (reproduced[0] / path.name).read_text()


def test_exact_quantiles_miss_as_often_as_they_say_and_gaussian_ones_do_not():
    result = calibrate(
        kernel(), "gamma(0.25, scale=2)", np.linspace(-5, 5, 5), np.linspace(-5, 5, 21), n=20_000
    )
    within = 4.5 * np.sqrt(0.05 * 0.95 / result.n)
    assert np.all(np.abs(result.exact - 0.05) < within)
    assert result.gaussian[:, 0].mean() > 0.055
    assert result.gaussian[:, 1].mean() < 0.01
    assert np.all(result.gaussian_width > result.exact_width)
