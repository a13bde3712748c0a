"""Sums of terms of several laws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special, stats

from wienerkernel import LinearCombination, Mixture, SmoothedResiduals

Q = np.array([0.001, 0.05, 0.3, 0.5, 0.9, 0.9999])


def convolved(first, second, y):
    """P(A + B <= y) for independent A and B, by quadrature between the points where either is not smooth."""
    kinks = [y - a for a in (*first.support(), first.median(), 0.3) if np.isfinite(a)]
    low, high = second.support()
    edges = np.unique([low, *(x for x in (*kinks, second.median(), 1.0) if low < x < high), high])
    parts = integrate.tanhsinh(lambda x: first.cdf(y - x) * second.pdf(x), edges[:-1], edges[1:])
    return float(np.sum(parts.integral))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (stats.expon(), stats.uniform(-1.0, 3.0)),
        (stats.gamma(0.5, scale=2.0), stats.laplace(1.0)),
        (stats.t(4), stats.truncexpon(2.0)),
        (stats.lognorm(0.5), stats.norm(0.3, 0.7)),
        (stats.triang(0.3), stats.logistic()),
    ],
    ids=lambda law: law.dist.name,
)
def test_two_laws_are_convolved(first, second):
    Y = LinearCombination([first, second], [[1.0], [1.0]])
    y = np.asarray(Y.ppf(Q))
    np.testing.assert_allclose([convolved(first, second, point) for point in y], Q, rtol=0, atol=1e-12)


def test_the_same_law_in_two_lists_is_one_list():
    w = np.array([0.3, -1.0, 0.7, 0.2])
    one = LinearCombination("gamma(0.25, scale=2)", w)
    two = LinearCombination(["gamma(0.25, scale=2)"] * 2, [w[:1], w[1:]])
    np.testing.assert_array_equal(two.ppf(Q), one.ppf(Q))


def test_laws_that_differ_in_loc_and_scale_are_one_law_with_other_weights():
    Y = LinearCombination(["gamma(0.25, loc=1, scale=2)", "gamma(0.25, loc=-3, scale=5)"], [[1.0], [0.4]])
    np.testing.assert_allclose(Y.cdf([0.2, 3.0]), stats.gamma(0.5, scale=2.0).cdf([0.4, 3.2]), rtol=1e-12)


def test_normal_laws_are_the_normal_part():
    Y = LinearCombination(["norm(1, 2)", "expon()"], [[1.0, -1.0], [0.5]])
    expected = LinearCombination("expon()", [0.5], normal_std=np.sqrt(8.0))
    y = np.linspace(-5, 8, 9)
    np.testing.assert_allclose(Y.cdf(y), expected.cdf(y), rtol=0, atol=1e-14)
    np.testing.assert_allclose(Y.pdf(y), expected.pdf(y), rtol=1e-12)


def test_a_discrete_and_a_continuous_law_have_a_density_together():
    Y = LinearCombination([stats.poisson(2.0), stats.uniform()], [[1.0], [0.5]])
    y = np.array([-0.1, 0.2, 0.7, 1.3, 2.5, 7.1])
    k = np.arange(60)
    pmf = stats.poisson(2.0).pmf(k)
    np.testing.assert_allclose(
        Y.cdf(y), stats.uniform(scale=0.5).cdf(y[:, None] - k) @ pmf, rtol=0, atol=1e-13
    )
    np.testing.assert_allclose(
        Y.pdf(y), stats.uniform(scale=0.5).pdf(y[:, None] - k) @ pmf, rtol=0, atol=1e-12
    )


def test_two_discrete_laws_are_enumerated_and_have_no_density():
    Y = LinearCombination([stats.binom(5, 0.3), [-1.0, 0.5]], [[2.0], [1.0, 1.0]])
    sums = {}
    for n, p in enumerate(stats.binom(5, 0.3).pmf(np.arange(6))):
        for a in (-1.0, 0.5):
            for b in (-1.0, 0.5):
                sums[2.0 * n + a + b] = sums.get(2.0 * n + a + b, 0.0) + p / 4
    y = np.array(sorted(sums))
    np.testing.assert_allclose(Y.cdf(y), np.cumsum([sums[v] for v in y]), rtol=0, atol=1e-14)
    with pytest.raises(TypeError, match="no density"):
        Y.pdf(0.0)


def test_moments_support_and_draws_add_up():
    laws = [stats.gamma(0.25, scale=2.0), stats.uniform(-1.0, 2.0), stats.t(9)]
    weights = [np.array([[1.0, 0.5], [0.0, 2.0]]), np.array([-2.0]), np.array([[0.1], [0.0]])]
    Y = LinearCombination(laws, weights, counts=[[1, 3], None, [2]], loc=[1.0, 2.0])
    assert Y.shape == (2,)
    counts = [np.array([1, 3]), np.array([1]), np.array([2])]
    variance = sum(law.var() * (w**2 @ n) for law, w, n in zip(laws, weights, counts, strict=True))
    np.testing.assert_allclose(Y.var(), variance, rtol=1e-12)
    np.testing.assert_allclose(Y.support()[0], [-np.inf, 0.0])
    draws = Y.rvs(20_000, random_state=0)
    np.testing.assert_allclose(draws.mean(axis=0), Y.mean(), atol=0.06)
    for k in range(2):
        alone = LinearCombination(
            laws, [np.broadcast_to(w, (2, w.shape[-1]))[k] for w in weights], counts=counts, loc=[1.0, 2.0][k]
        )
        np.testing.assert_allclose(Y.ppf(0.9)[k], alone.ppf(0.9), rtol=1e-10)
        assert stats.kstest(draws[:4000, k], alone.cdf).pvalue > 1e-3


def test_many_terms_of_several_laws_agree_with_cumulants():
    rng = np.random.default_rng(0)
    Y = LinearCombination(
        ["expon()", "lognorm(0.5)", [-1.0, 0.2, 0.9]],
        [rng.uniform(0, 1, 40), rng.normal(size=30), rng.normal(size=25)],
    )
    # mean and variance of the exact law, by quadrature of its tails
    y = np.linspace(-60, 80, 20_001)
    cdf = Y.cdf(y)
    mean = y[-1] - integrate.simpson(cdf, x=y)
    square = y[-1] ** 2 - 2 * integrate.simpson(y * cdf, x=y)
    assert mean == pytest.approx(float(Y.mean()), abs=1e-8)
    assert square - mean**2 == pytest.approx(float(Y.var()), rel=1e-8)


def test_mixtures_and_smoothed_residuals_may_be_among_the_laws():
    mixture = Mixture([[0.0, 1.0], "uniform()"], [0.5, 0.5])
    smooth = SmoothedResiduals([-1.0, 0.3, 2.0], bandwidth=0.1)
    Y = LinearCombination([mixture, smooth], [[1.0], [0.5]])
    y = np.linspace(-1.0, 2.5, 8)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    x, w = 0.5 * (nodes + 1), 0.5 * weights
    expected = (
        0.25 * smooth.cdf(2 * y) + 0.25 * smooth.cdf(2 * (y - 1)) + 0.5 * smooth.cdf(2 * (y[:, None] - x)) @ w
    )
    np.testing.assert_allclose(Y.cdf(y), expected, rtol=0, atol=1e-12)


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="2 laws need as many arrays"):
        LinearCombination(["expon()", "norm()"], [[1.0]])


def test_a_pole_beside_a_histogram_with_a_small_normal_part():
    """Of the histogram and the normal part the law is known; with u = b^0.3 there is no pole to integrate over."""
    counts, edges, tau = np.array([1, 4, 2, 7, 3, 1]), np.linspace(-1.0, 2.0, 7), 4e-4
    histogram = stats.rv_histogram((counts, edges), density=False)()
    Y = LinearCombination([stats.beta(0.3, 2.0), histogram], [[0.1], [11.2]], normal_std=tau)
    x, p = np.polynomial.legendre.leggauss(30)
    u = (np.arange(100)[:, None] + 0.5 * (1 + x)).ravel() / 100
    b = u ** (1 / 0.3)
    p = np.tile(p, 100) * (1 - b)
    y = np.linspace(-11.0, 22.4, 25)
    z = (y[:, None, None] - 0.1 * b[:, None] - 11.2 * edges) / tau
    integral = tau * (z * special.ndtr(z) + np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))
    cdf = -np.diff(integral) / (11.2 * np.diff(edges)) @ (counts / counts.sum())
    value, error = Y.cdf(y, return_error=True)
    np.testing.assert_allclose(value, cdf @ p / p.sum(), rtol=0, atol=2e-13)
    assert np.all(error < 1e-12)


def test_many_atoms_shift_the_law_of_few_terms_with_poles():
    weights, poles = np.array([-102.0, 8.35, 31.2, 20.1, 1.67, -3.7, 55.5]), [-3.01, -0.538]
    Y = LinearCombination([np.array([-0.3, 0.1, 1.7]), stats.beta(0.3, 2.0)], [weights, poles])
    atoms = np.zeros(1)
    for weight in weights:
        atoms = np.add.outer(atoms, weight * np.array([-0.3, 0.1, 1.7])).ravel()
    y = Y.mean() + Y.std() * np.array([-2.0, -1.0, -0.2, 0.3, 1.5])
    smooth = LinearCombination(stats.beta(0.3, 2.0), poles)
    value, error = Y.cdf(y, return_error=True)
    np.testing.assert_allclose(value, smooth.cdf(y[:, None] - atoms).mean(axis=1), rtol=0, atol=1e-12)
    assert np.all(error < 1e-12)
