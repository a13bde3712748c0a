"""The smoother against the formulas written out with dense inverses, for every structure of noise and trend."""

import tracemalloc

import mpmath
import numpy as np
import pytest
from helpers import every_structure, every_trend, structured_data, two_kernels

from wienerkernel import RBF, NotPositiveDefiniteError
from wienerkernel.smoother import Smoother
from wienerkernel.smoother.fast_predictor import FastPredictor
from wienerkernel.smoother.leave_one_out import leave_one_out
from wienerkernel.smoother.samples import Samples
from wienerkernel.smoother.trend import Trend

TOLERANCE = {"rtol": 1e-10, "atol": 1e-11}


class Dense:
    """The same smoother in the long form: one row per sample, explicit inverses."""

    def __init__(self, kernel, X, Y, regularizer, scale, trend, places):
        as_matrix = lambda c: np.diag(c) if c.ndim == 1 else c
        self.kernel, self.X, self.Y = kernel, X, Y
        self.R, self.L = as_matrix(regularizer), as_matrix(scale)
        self.K = kernel(X, X)
        self.A = np.linalg.inv(self.K + self.R)
        self.trend = Trend(trend, places)
        self.H = self.trend(X)

    def weights(self, Z):
        k = self.kernel(self.X, Z)
        S = self.H.T @ self.A @ self.H
        return (self.A @ (k + self.H @ np.linalg.solve(S, self.trend(Z).T - self.H.T @ self.A @ k))).T

    def model(self, Z):
        a, k = self.weights(Z), self.kernel(Z, self.X)
        return self.kernel.diag(Z) - 2 * np.sum(a * k, axis=1) + np.einsum("mi,ij,mj->m", a, self.K, a)

    def gain(self, Z):
        return np.sum((self.weights(Z) @ self.L) ** 2, axis=1)

    def log_likelihood(self):
        beta = np.linalg.solve(self.H.T @ self.A @ self.H, self.H.T @ self.A @ self.Y)
        r = self.Y - self.H @ beta
        n, q = self.Y.shape
        _, logdet = np.linalg.slogdet(self.K + self.R)
        return -0.5 * (np.sum(r * (self.A @ r)) + q * logdet + q * n * np.log(2 * np.pi))


def problem(structure, trend, n_outputs=1):
    X, Y, regularizer, scale, Z = structured_data(structure, n_outputs)
    samples, kernel = Samples.collapse(X, regularizer, scale), two_kernels()
    dense = Dense(kernel, X, Y, regularizer, scale, trend, samples.places)
    return Smoother(kernel, samples, Y, trend), dense, Z


@every_structure
@every_trend
class TestAgainstTheLongForm:
    def test_weights(self, structure, trend):
        smoother, dense, Z = problem(structure, trend)
        weights = smoother.samples.per_sample(smoother.evaluate(Z)[1])
        np.testing.assert_allclose(weights, dense.weights(Z), **TOLERANCE)

    def test_mean(self, structure, trend):
        smoother, dense, Z = problem(structure, trend, n_outputs=3)
        np.testing.assert_allclose(smoother.mean(Z), dense.weights(Z) @ dense.Y, **TOLERANCE)

    def test_variances(self, structure, trend):
        smoother, dense, Z = problem(structure, trend)
        _, model, gain = smoother.mean_and_parts(Z)
        np.testing.assert_allclose(model, dense.model(Z), **TOLERANCE)
        np.testing.assert_allclose(gain, dense.gain(Z), **TOLERANCE)

    def test_the_variance_at_a_place_is_its_ridge_times_its_own_weight(self, structure, trend, monkeypatch):
        monkeypatch.setattr(
            "wienerkernel.smoother.smoother.CANCELLED", np.inf
        )  # computed that way at every place
        smoother, dense, Z = problem(structure, trend)
        Z = np.concatenate([smoother.places[::-1], Z])
        _, model, gain = smoother.mean_and_parts(Z)
        np.testing.assert_allclose(model, dense.model(Z), **TOLERANCE)
        np.testing.assert_allclose(gain, dense.gain(Z), **TOLERANCE)

    def test_cumulants_of_the_noise(self, structure, trend):
        smoother, dense, Z = problem(structure, trend)
        weights, counts = smoother.samples.per_noise(smoother.evaluate(Z)[1])
        long = dense.weights(Z) @ dense.L
        for r in (1, 2, 3, 4):
            np.testing.assert_allclose(weights**r @ counts, np.sum(long**r, axis=1), **TOLERANCE)

    def test_model_covariance_has_the_model_part_on_its_diagonal(self, structure, trend):
        smoother, dense, Z = problem(structure, trend)
        covariance = smoother.evaluate_jointly(Z)[2]
        np.testing.assert_allclose(np.diagonal(covariance), dense.model(Z), **TOLERANCE)
        a = dense.weights(Z)
        cross = a @ dense.kernel(dense.X, Z)
        expected = dense.kernel(Z, Z) - cross - cross.T + a @ dense.K @ a.T
        np.testing.assert_allclose(covariance, expected, **TOLERANCE)

    def test_log_likelihood(self, structure, trend):
        smoother, dense, _ = problem(structure, trend, n_outputs=2)
        np.testing.assert_allclose(smoother.log_likelihood(), dense.log_likelihood(), rtol=1e-11)

    def test_log_likelihood_gradient_equals_finite_differences(self, structure, trend):
        smoother, _, _ = problem(structure, trend, n_outputs=2)
        theta, h = smoother.kernel.theta, 1e-5

        def value(shifted):
            kernel = smoother.kernel.with_theta(shifted)
            return Smoother(kernel, smoother.samples, smoother.targets, trend).log_likelihood()

        numeric = [(value(theta + h * e) - value(theta - h * e)) / (2 * h) for e in np.eye(len(theta))]
        np.testing.assert_allclose(smoother.log_likelihood_gradient(), numeric, rtol=1e-6, atol=1e-7)

    def test_sensitivity_may_take_the_place_of_the_factor(self, structure, trend):
        smoother, _, _ = problem(structure, trend, n_outputs=2)
        kept = np.tril(smoother.log_likelihood_sensitivity())
        sensitivity = smoother.log_likelihood_sensitivity(overwrite_factor=True)
        assert np.shares_memory(sensitivity, smoother.factor)
        np.testing.assert_allclose(np.tril(sensitivity), kept, rtol=1e-13, atol=1e-14)

    def test_leave_one_out_equals_refitting_without_the_sample(self, structure, trend):
        smoother, dense, _ = problem(structure, trend, n_outputs=2)
        residual, model, gain = leave_one_out(smoother)
        take = lambda c, keep: c[keep] if c.ndim == 1 else c[np.ix_(keep, keep)]
        samples = smoother.samples
        for i in range(len(dense.X)):
            keep = np.delete(np.arange(len(dense.X)), i)
            scale = samples.scale[keep]  # of a matrix: its rows
            regularizer = take(samples.row_regularizer, keep)
            rest = Dense(
                dense.kernel,
                dense.X[keep],
                dense.Y[keep],
                regularizer,
                np.ones(len(keep)),
                trend,
                samples.places,
            )
            rest.L = np.diag(scale) if scale.ndim == 1 else scale
            x = dense.X[[i]]
            np.testing.assert_allclose(residual[i], dense.Y[i] - (rest.weights(x) @ rest.Y)[0], **TOLERANCE)
            np.testing.assert_allclose(model[i], rest.model(x)[0], **TOLERANCE)
            np.testing.assert_allclose(gain[i], rest.gain(x)[0], **TOLERANCE)


def test_replicates_need_only_as_many_places():
    smoother, dense, _ = problem("replicated", None)
    assert len(smoother.places) == 7
    assert len(dense.X) == 25


def test_noise_variables_of_one_place_and_scale_are_counted_together():
    X = np.array([[0.0], [0.0], [0.0], [1.0]])
    scale = np.array([1.0, 2.0, 1.0, 1.0])
    samples = Samples.collapse(X, scale**2, scale)
    weights, counts = samples.per_noise(np.array([[1.0, 1.0]]))
    assert counts.tolist() == [2, 1, 1]
    assert weights.shape == (1, 3)


def test_minus_zero_and_zero_are_one_place():
    assert Samples.collapse(np.array([[0.0], [-0.0]]), np.ones(2), np.ones(2)).n_places == 1


def test_places_keep_the_order_in_which_they_appear():
    X = np.array([[3.0, 1.0], [1.0, 5.0], [3.0, 1.0], [1.0, 2.0]])
    samples = Samples.collapse(X, np.ones(4), np.ones(4))
    assert samples.places.tolist() == [[3.0, 1.0], [1.0, 5.0], [1.0, 2.0]]
    assert samples.index.tolist() == [0, 1, 0, 2]


def test_results_do_not_depend_on_the_chunks(monkeypatch):
    smoother, _, Z = problem("replicated", "linear")
    whole = *smoother.mean_and_parts(Z), *smoother.mean_and_variance(Z)
    monkeypatch.setattr("wienerkernel.smoother.smoother.CHUNK", 8)
    monkeypatch.setattr("wienerkernel.smoother.smoother.CHUNK_ROWS", 2)
    parts = *smoother.mean_and_parts(Z), *smoother.mean_and_variance(Z)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("structure", ["distinct", "replicated", "correlated", "other ridge"])
def test_all_ways_to_evaluate_give_the_same_parts(structure):
    smoother, _, Z = problem(structure, "linear", n_outputs=2)
    mean, weights, model = smoother.evaluate(Z)
    columns, counts = smoother.samples.per_noise(weights)
    for found, expected in zip(smoother.mean_and_parts(Z), (mean, model, columns**2 @ counts), strict=True):
        np.testing.assert_allclose(found, expected, **TOLERANCE)
    np.testing.assert_allclose(mean, smoother.mean(Z), **TOLERANCE)


def test_mean_and_parts_evaluate_the_kernel_once(monkeypatch):
    smoother, _, Z = problem("distinct", None)
    smoother.mean(Z)
    asked = []
    evaluate = RBF._values
    monkeypatch.setattr(RBF, "_values", lambda k, P, Q: asked.append(1) or evaluate(k, P, Q))
    smoother.mean_and_parts(Z)
    assert len(asked) == 1


def test_fit_and_prediction_fit_into_little_more_than_the_factor():
    n = 2500
    X, Z = np.random.default_rng(0).normal(size=(n, 8)), np.random.default_rng(1).normal(size=(1000, 8))
    samples = Samples.collapse(X, np.ones(n), np.ones(n))
    tracemalloc.start()
    Smoother(RBF(2.0), samples, X[:, :1]).mean_and_parts(Z)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.3 * 8 * n**2


def test_posterior_variance_is_model_plus_noise_part_when_the_ridge_is_the_noise_variance():
    smoother, _, Z = problem("scaled", "linear")
    _, model, gain = smoother.mean_and_parts(Z)
    np.testing.assert_allclose(smoother.mean_and_variance(Z)[1], model + 0.3 * gain, rtol=1e-11)


def test_a_kernel_matrix_that_is_not_positive_definite_names_the_remedies():
    X = np.linspace(0, 1, 30)[:, None]
    samples = Samples.collapse(X, np.full(30, 1e-20), np.ones(30))
    with pytest.raises(NotPositiveDefiniteError, match="raise the ridge"):
        Smoother(RBF(10.0), samples, np.zeros((30, 1)))


def test_a_trend_that_the_places_do_not_determine_is_refused():
    X = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    samples = Samples.collapse(X, np.ones(3), np.ones(3))
    with pytest.raises(NotPositiveDefiniteError, match="trend"):
        Smoother(RBF(1.0), samples, np.zeros((3, 1)), "linear")


def test_an_unknown_trend_is_refused():
    with pytest.raises(ValueError, match="'constant' or 'linear'"):
        Trend("quadratic", np.zeros((2, 1)))


def exact_model_part(amplitude, X, ridge, trend, z):
    """P2 and the weights at z for amplitude * RBF(1), in 60 digits: the formula with its weights, which cancels."""
    with mpmath.workdps(60):
        n, q = len(X), {None: 0, "constant": 1, "linear": 2}[trend]
        x, r = [mpmath.mpf(float(value)) for value in X[:, 0]], mpmath.mpf(ridge)
        k = lambda a, b: amplitude * mpmath.exp(-((a - b) ** 2) / 2)
        h = lambda a: [mpmath.mpf(1), a][:q]
        system, right = mpmath.zeros(n + q), mpmath.zeros(n + q, 1)
        for i in range(n):
            for j in range(n):
                system[i, j] = k(x[i], x[j]) + (r if i == j else 0)
            for j, value in enumerate(h(x[i])):
                system[i, n + j] = system[n + j, i] = value
        z = mpmath.mpf(float(z))
        cross = [k(z, xi) for xi in x]
        for i, value in enumerate([*cross, *h(z)]):
            right[i] = value
        b = list(mpmath.lu_solve(system, right))[:n]
        total = k(z, z) - 2 * mpmath.fdot(b, cross)
        total += mpmath.fsum(b[i] * b[j] * k(x[i], x[j]) for i in range(n) for j in range(n))
        return total, np.array([float(value) for value in b])


@every_trend
@pytest.mark.parametrize("amplitude", [1.0, 1e4, 1e8, 1e10, 1e12])
def test_rounding_errors_of_the_model_part_have_the_documented_bounds(amplitude, trend):
    eps, ridge = np.finfo(float).eps, 1.0
    rng = np.random.default_rng(0)
    for n in (3, 9):
        X = np.sort(rng.uniform(-3, 3, (n, 1)), axis=0)
        samples = Samples.collapse(X, np.full(n, ridge), np.ones(n))
        smoother = Smoother(amplitude * RBF(1.0), samples, np.zeros((n, 1)), trend)
        fast = FastPredictor(smoother, ridge)
        Z = np.concatenate([X, rng.uniform(-4, 4, (4, 1))])
        computed = smoother.mean_and_parts(Z)[1], fast(Z)[2], [fast(z)[2] for z in Z]
        for i, z in enumerate(Z):
            exact, b = exact_model_part(amplitude, X, ridge, trend, z[0])
            bound = amplitude * (1 + np.sum(np.abs(b))) ** 2
            if i < n and exact + ridge * b @ b < 1e-6 * amplitude:  # x is a place
                bound = amplitude * np.linalg.norm(b - np.eye(n)[i]) * np.linalg.norm(b) + ridge
            for values in computed:
                assert abs(values[i] - exact) < 8 * eps * bound


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize(("trend", "n", "lost"), [("constant", 1, 0), ("linear", 2, 0), ("linear", 5, 4)])
def test_a_sample_without_which_the_trend_is_unknown_cannot_be_left_out(trend, n, lost, correlated):
    # of five rows, the last is the only one with another first input
    X = (
        np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 3.0], [2.0, 5.0]])[:n]
        if n > 2
        else np.eye(2)[:n, :1]
    )
    ones = np.eye(n) if correlated else np.ones(n)
    samples = Samples.collapse(X, ones, ones)
    smoother = Smoother(RBF(1.0), samples, np.arange(n, dtype=float)[:, None], trend)
    with pytest.raises(ValueError, match=f"sample {lost} cannot be left out.*trend '{trend}'"):
        leave_one_out(smoother)


def test_a_repeated_sample_can_be_left_out_with_a_trend():
    samples = Samples.collapse(np.zeros((2, 1)), np.ones(2), np.ones(2))
    residual, model, gain = leave_one_out(Smoother(RBF(1.0), samples, np.array([[1.0], [3.0]]), "constant"))
    np.testing.assert_allclose(residual.ravel(), [-2, 2])
    np.testing.assert_allclose(model, 0, atol=1e-12)
    np.testing.assert_allclose(gain, 1)
