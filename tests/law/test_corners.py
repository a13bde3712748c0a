"""Singular points of a density give the characteristic function at high frequencies, and the law of hard sums."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from law.cases import HARD, LAWS, check, sum_std
from scipy import stats

from wienerkernel import LinearCombination
from wienerkernel.law.corners import GOOD, corners
from wienerkernel.law.graded import Graded
from wienerkernel.noise import Mixture, as_noise


@pytest.mark.parametrize(
    ("law", "exponents", "step"),
    [
        (stats.beta(0.1, 2.3), [0.1, 2.3], 1.0),
        (stats.powerlaw(0.05), [0.05, 1.0], 1.0),
        (stats.arcsine(), [0.5, 0.5], 1.0),
        (stats.weibull_min(0.3), [0.3], 0.3),
        (stats.exponweib(0.3, 0.7), [0.21], 0.7),
        (stats.chi(0.2), [0.2], 1.0),
        (stats.laplace(), [1.0, 1.0], 1.0),
    ],
    ids=lambda value: getattr(getattr(value, "dist", None), "name", ""),
)
def test_the_exponents_of_poles_zeros_and_jumps_are_found(law, exponents, step):
    known = corners(as_noise(law))
    np.testing.assert_allclose(known.exponent, exponents, rtol=1e-7)
    np.testing.assert_allclose(known.step, step, rtol=1e-7)


@pytest.mark.parametrize("t", [60.0, 1e3, 1e6])
def test_the_sum_over_corners_is_kummers_function(t):
    known = corners(as_noise(stats.beta(0.3, 0.1)))
    exact = complex(mpmath.hyp1f1(0.3, 0.4, mpmath.mpc(0, t)))
    assert known.error < GOOD
    assert abs(complex(known.phi(np.array([t]))[0]) - exact) < 2 * known.error  # which is seen at some probes


def test_a_mixture_has_the_corners_of_its_components_and_its_atoms():
    law = Mixture([[0.0, 2.0], stats.gamma(0.1, loc=0.3), stats.norm()], [0.2, 0.5, 0.3])
    known, t = corners(as_noise(law)), np.array([90.0, 1234.5])
    exact = 0.1 * (1 + np.exp(2j * t)) + 0.5 * np.exp(0.3j * t) * (1 - 1j * t) ** -0.1
    np.testing.assert_allclose(known.phi(t), exact, rtol=0, atol=1e-13)


def test_a_law_without_such_expansions_has_no_corners():
    assert corners(as_noise(stats.lognorm(1.0))) is None


SOME = {
    ("beta(.1,.1)", 5, 0.0),
    ("powerlaw(.05)", 3, 1e-6),
    ("powerlaw(.3)", 8, 1e-6),
    ("two gammas", 3, 1e-3),
    ("three poles", 3, 1e-6),
    ("histogram(6)", 2, 1e-3),
    ("loguniform", 3, 1e-3),
    ("exponweib", 5, 0.0),
    ("pareto(2.5)", 3, 0.0),
    ("atoms+expon", 2, 1e-3),
    ("atoms+uniform", 3, 1e-6),
}


def of(case):
    return case.law, len(case.row), case.normal_std / sum_std(LAWS[case.law].law, case.row)


CASES = [c for c in HARD if any((a, b) == of(c)[:2] and abs(p - of(c)[2]) <= 0.01 * p for a, b, p in SOME)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_hard_sums_keep_their_stated_errors(case):
    outcome = check(case, limit=None, size=2**17, budget=3e6)
    assert not outcome.findings, "\n" + "\n".join(map(str, outcome.findings))
    std = sum_std(LAWS[case.law].law, case.row)
    y = LAWS[case.law].law.mean() * case.row.sum() + std * np.linspace(-1.73, 1.91, 9)
    assert float(np.max(case.combination().cdf(y, return_error=True)[1])) < 1e-9


def test_the_frequency_at_which_corners_take_over_does_not_matter():
    Y = LinearCombination(stats.beta(0.1, 0.1), [1.0, -0.7, 0.4, -1.3, 0.9], normal_std=1e-4)
    y = np.linspace(-1.71, 2.11, 23)
    cdf, pdf = Y.cdf(y), Y.pdf(y)
    part = Y._batch._block.parts[0][1]
    known = part.inversion
    assert isinstance(known, Graded)
    rows, corner_sums = known.rows, [tail.row for tail in known.beyond]
    other = Graded(rows, (known.low, known.high), 2.7 * known.decay, corner_sums)
    part.inversion = other
    Y._batch._block._latest = None
    np.testing.assert_allclose(Y.cdf(y), cdf, rtol=0, atol=2e-15)
    np.testing.assert_allclose(Y.pdf(y), pdf, rtol=1e-11)


@pytest.mark.filterwarnings("ignore::wienerkernel.AccuracyWarning")
def test_the_error_of_one_large_term_counts_the_rate_of_the_tail():
    law = stats.exponweib(0.3, 0.7)  # a tail between a power and an exponential
    y = np.array([40.0, 62.5, 80.0])
    sf, error = LinearCombination(law, [1.0, 1.0, 1.0]).sf(y, return_error=True)
    true = LinearCombination(law, [1.0, 1.0, 1.0], method="convolution").sf(y)
    assert np.all(np.abs(sf - true) <= error + 1e-14)
