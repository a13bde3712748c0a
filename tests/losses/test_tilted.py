"""Moments of the noise density times a normal density, against closed forms and mpmath."""

import itertools

import mpmath
import numpy as np
import pytest
from scipy import stats

from wienerkernel import Mixture, SmoothedResiduals, as_noise
from wienerkernel.losses.density import NoiseDensity
from wienerkernel.losses.tilted import tilted_moments

CENTERS = np.array([-3.0, -0.4, 0.0, 0.3, 2.0, 7.0])
STDS = np.array([0.02, 0.3, 1.0, 8.0])


def grid(density):
    """Centers and standard deviations in the units of the density."""
    c, s = (np.ravel(part) for part in np.meshgrid(CENTERS, STDS))
    return c * density.spread / 3, s * density.spread / 3


def by_mpmath(logpdf, points, c, s, power):
    """Log integral, mean and variance of exp(power * logpdf) N(c, s^2)."""
    ends = sorted({*points, *(c + s * k for k in (-12, -6, -3, -1, 0, 1, 3, 6, 12))})

    def moment(r):
        def integrand(z):
            return mpmath.exp(power * logpdf(z)) * mpmath.npdf(z, c, s) * z**r

        return mpmath.quad(integrand, ends)

    z0, z1, z2 = (moment(r) for r in range(3))
    return float(mpmath.log(z0)), float(z1 / z0), float(z2 / z0 - (z1 / z0) ** 2)


def test_normal_noise_has_normal_products():
    density = NoiseDensity.of(as_noise("norm(0.5, 2)"))
    c, s = grid(density)
    for power in (1.0, 0.5):
        found = tilted_moments(density, c, s, power)
        variance = 1 / (1 / s**2 + power)
        log_z = (
            stats.norm.logpdf(c, 0, np.sqrt(s**2 + 1 / power))
            - 0.5 * (power - 1) * np.log(2 * np.pi)
            - 0.5 * np.log(power)
        )
        np.testing.assert_allclose(found.log_integral, log_z, rtol=0, atol=2e-9)
        np.testing.assert_allclose(found.mean, variance * c / s**2, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(found.variance, variance, rtol=1e-8)


def test_uniform_noise_truncates_the_normal_density():
    density = NoiseDensity.of(as_noise("uniform(0, 1)"))
    c, s = grid(density)
    found = tilted_moments(density, c, s)
    seen = found.log_integral > -50  # scipy.stats.truncnorm is inaccurate further out
    truncated = stats.truncnorm((0 - c) / s, (1 - c) / s, c, s)
    log_z = np.log(np.maximum(stats.norm.cdf(1, c, s) - stats.norm.cdf(0, c, s), 1e-300))
    np.testing.assert_allclose(found.log_integral[seen], log_z[seen], rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.mean[seen], truncated.mean()[seen], rtol=1e-7)
    np.testing.assert_allclose(found.variance[seen], truncated.var()[seen], rtol=1e-5)


@pytest.mark.parametrize("power", [1.0, 0.8, 0.5])
@pytest.mark.parametrize("shape", [0.25, 0.6, 1.0, 3.0])
def test_gamma_noise_has_parabolic_cylinder_functions(shape, power):
    """int z^(b-1) e^(-q z) N(z; c, s^2) dz for z > 0 is a parabolic cylinder function, with moments by shifting b."""
    density = NoiseDensity.of(as_noise(stats.gamma(shape, scale=2)))
    c, s = (part[::3] for part in grid(density))
    found = tilted_moments(density, c, s, power)

    def log_raw(b, c, s):
        x = power * s - c / s
        return (
            mpmath.log(mpmath.gamma(b)) + b * mpmath.log(s) - mpmath.mpf(c) ** 2 / (2 * s**2) + x**2 / 4
            + mpmath.log(mpmath.pcfd(-b, x)) - mpmath.log(s * mpmath.sqrt(2 * mpmath.pi))
        )  # fmt: skip

    with mpmath.workdps(40):
        for i, (ci, si) in enumerate(zip(c, s, strict=True)):
            ci, si = mpmath.mpf(ci), mpmath.mpf(si)
            b = 1 + power * (mpmath.mpf(shape) - 1)
            logs = [log_raw(b + r, ci, si) for r in range(3)]
            mean = mpmath.exp(logs[1] - logs[0])
            variance = mpmath.exp(logs[2] - logs[0]) - mean**2
            value = logs[0] - power * mpmath.log(mpmath.gamma(shape))
            assert abs(float(value) - found.log_integral[i]) < 2e-8 * max(1, abs(float(value)))
            assert abs(float(mean - found.mean[i])) < 5e-8 * si
            assert abs(float(variance - found.variance[i])) < 5e-8 * si**2


@pytest.mark.parametrize("df", [3, 8])
def test_student_noise_against_mpmath(df):
    density = NoiseDensity.of(as_noise(stats.t(df)))
    c, s = (part[::4] for part in grid(density))
    found = tilted_moments(density, c, s, 0.8)

    def logpdf(z):
        return -(df + 1) / 2 * mpmath.log(1 + z**2 / df)

    constant = stats.t.logpdf(0, df)
    for i in range(len(c)):
        log_z, mean, variance = by_mpmath(logpdf, (0, -3, 3, -30, 30), c[i], s[i], 0.8)
        assert abs(log_z + 0.8 * constant - found.log_integral[i]) < 1e-8
        assert abs(mean - found.mean[i]) < 1e-7 * s[i]
        assert abs(variance / found.variance[i] - 1) < 1e-7


@pytest.mark.parametrize(
    "noise",
    [
        "laplace()",
        "lognorm(1)",
        "lognorm(0.3)",
        "beta(0.5, 0.5)",
        "norm(0, 0.001)",
        Mixture(["norm(0, 0.1)", "norm(0, 3)"], [0.8, 0.2]),
        Mixture(["gamma(0.3)", "norm(1, 0.5)"], [0.5, 0.5]),
        SmoothedResiduals([-1.0, 0.0, 0.2, 3.0]),
    ],
    ids=repr,
)
def test_other_laws_against_fine_trapezoids(noise):
    """A rule with 400,000 nodes in coordinates that stretch the singular points."""
    noise = as_noise(noise)
    # four residuals have narrow peaks between the quantiles
    tolerance = 2e-5 if isinstance(noise, SmoothedResiduals) else 5e-6 if isinstance(noise, Mixture) else 1e-7
    density = NoiseDensity.of(noise)
    c, s = grid(density)
    c, s = c[::5], s[::5]
    found = tilted_moments(density, c, s, 0.8)
    for i in range(len(c)):
        low = max(
            noise.support()[0] if density.scale == 1 and density.loc == 0 else -np.inf, c[i] - 14 * s[i]
        )
        points = density.points[(density.points > low) & (density.points < c[i] + 14 * s[i])]
        pieces = np.unique(
            [
                low,
                c[i] + 14 * s[i],
                *points,
                *density.quantiles[(density.quantiles > low) & (density.quantiles < c[i] + 14 * s[i])],
            ]
        )
        t = np.linspace(-4.6, 4.6, 4001)  # tanh-sinh on each piece
        total = np.zeros(3)
        for a, b in itertools.pairwise(pieces):
            u = np.pi / 2 * np.sinh(t)
            near = (b - a) / (1 + np.exp(2 * np.abs(u)))  # distance to the closer end, without cancellation
            z = np.where(u < 0, a + near, b - near)
            z = np.clip(z, np.nextafter(a, b), np.nextafter(b, a))
            jacobian = (b - a) / 2 * np.pi / 2 * np.cosh(t) / np.cosh(np.minimum(np.abs(u), 300)) ** 2
            f = np.exp(0.8 * density.logpdf(z) - 0.5 * ((z - c[i]) / s[i]) ** 2) * jacobian * (t[1] - t[0])
            total += [f.sum(), f @ (z - c[i]), f @ (z - c[i]) ** 2]
        if total[0] < 1e-200:
            continue
        mean = total[1] / total[0]
        variance = total[2] / total[0] - mean**2
        assert abs(np.log(total[0] / (s[i] * np.sqrt(2 * np.pi))) - found.log_integral[i]) < tolerance
        assert abs(mean + c[i] - found.mean[i]) < tolerance * s[i]
        assert abs(variance / found.variance[i] - 1) < 10 * tolerance


def test_noise_without_a_density_is_refused():
    with pytest.raises(ValueError, match="SmoothedResiduals"):
        NoiseDensity.of(as_noise([-1.0, 0.0, 1.0]))
    with pytest.raises(ValueError, match="no density"):
        NoiseDensity.of(as_noise("poisson(3)"))
