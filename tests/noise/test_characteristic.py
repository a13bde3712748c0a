"""Characteristic functions and cumulants of the laws in scipy.stats, against mpmath in high precision."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from wienerkernel.noise import ScipyNoise
from wienerkernel.noise.characteristic.families import CLOSED_FORMS, CONTOURS, characteristic, known
from wienerkernel.noise.characteristic.panels import numerical
from wienerkernel.noise.characteristic.quadrature import atoms, summed

INF = np.inf
SIZES = (1e-8, 1e-3, 0.3, 1.0, 4.0, 11.0, 37.0, 150.0)


def distance(got, expected):
    """|got - expected| up to multiples of 2 pi i."""
    d = mp.mpc(complex(got)) - expected
    return float(abs(d - 2j * mp.pi * mp.nint(d.imag / (2 * mp.pi))))


def law(name, *shapes):
    return characteristic(ScipyNoise(getattr(stats, name)(*shapes)))


def standard_cumulants(name, shapes, order):
    formula = known(name, shapes)
    return None if formula is None or formula.cumulants is None else formula.cumulants[:order]


def beta_cf(a, b, lower=0, upper=1):
    return lambda t: mp.exp(1j * lower * t) * mp.hyp1f1(a, a + b, 1j * (upper - lower) * t)


def piecewise_linear_cf(c, d):
    """Two partial integrations on each of the three pieces of a trapezoidal density."""

    def cf(t):
        knots = [mp.mpf(0), mp.mpf(c), mp.mpf(d), mp.mpf(1)]
        h = 2 / (1 + knots[2] - knots[1])
        w, total = 1j * t, mp.mpc(0)
        for left, right, f0, f1 in zip(knots, knots[1:], (0, h, h), (h, h, 0), strict=False):
            if right > left:
                e0, e1 = mp.exp(w * left), mp.exp(w * right)
                total += (e1 * f1 - e0 * f0) / w - (f1 - f0) / (right - left) * (e1 - e0) / w**2
        return total

    return cf


def truncated_normal_cf(a, b):
    def cdf(x, shift):
        return mp.sign(x) if mp.isinf(x) else mp.erf((mp.mpf(x) - shift) / mp.sqrt(2))

    return lambda t: mp.exp(-t * t / 2) * (cdf(b, 1j * t) - cdf(a, 1j * t)) / (cdf(b, 0) - cdf(a, 0))


def student_cf(df):
    def cf(t):
        m, x = mp.mpf(df) / 2, mp.sqrt(df) * t * (1 if t.real >= 0 else -1)
        return 2 * (x / 2) ** m * mp.besselk(m, x) / mp.gamma(m)

    return cf


third = mp.mpf(0.3)
ORACLES = {
    ("norm",): lambda t: mp.exp(-t * t / 2),
    ("gamma", 0.25): lambda t: (1 - 1j * t) ** -0.25,
    ("gamma", 0.01): lambda t: (1 - 1j * t) ** mp.mpf(-0.01),
    ("erlang", 3.0): lambda t: (1 - 1j * t) ** -3,
    ("expon",): lambda t: 1 / (1 - 1j * t),
    ("chi2", 3.0): lambda t: (1 - 2j * t) ** -1.5,
    ("pearson3", -0.5): lambda t: mp.exp(4j * t) / (1 + 0.25j * t) ** 16,
    ("laplace",): lambda t: 1 / (1 + t * t),
    ("laplace_asymmetric", 2.0): lambda t: 1 / ((1 - 0.5j * t) * (1 + 2j * t)),
    ("dgamma", 2.5): lambda t: ((1 - 1j * t) ** -2.5 + (1 + 1j * t) ** -2.5) / 2,
    ("exponnorm", 1.5): lambda t: mp.exp(-t * t / 2) / (1 - 1.5j * t),
    ("invgauss", 0.5): lambda t: mp.exp(2 * (1 - mp.sqrt(1 - 0.5j * t))),
    ("wald",): lambda t: mp.exp(1 - mp.sqrt(1 - 2j * t)),
    ("norminvgauss", 2.0, -1.0): lambda t: mp.exp(mp.sqrt(3) - mp.sqrt(4 - (-1 + 1j * t) ** 2)),
    ("logistic",): lambda t: mp.pi * t / mp.sinh(mp.pi * t),
    ("hypsecant",): lambda t: 1 / mp.cosh(mp.pi * t / 2),
    ("genlogistic", 0.3): lambda t: mp.gamma(1 - 1j * t) * mp.gamma(third + 1j * t) / mp.gamma(third),
    ("loggamma", 2.5): lambda t: mp.gamma(2.5 + 1j * t) / mp.gamma(2.5),
    ("gumbel_r",): lambda t: mp.gamma(1 - 1j * t),
    ("gumbel_l",): lambda t: mp.gamma(1 + 1j * t),
    ("moyal",): lambda t: mp.mpf(2) ** (-1j * t) * mp.gamma(0.5 - 1j * t) / mp.sqrt(mp.pi),
    ("skewnorm", 4.0): lambda t: mp.exp(-t * t / 2) * mp.erfc(-4j * t / mp.sqrt(34)),
    ("skewnorm", -1.0): lambda t: mp.exp(-t * t / 2) * mp.erfc(0.5j * t),
    ("halfnorm",): lambda t: mp.exp(-t * t / 2) * mp.erfc(-1j * t / mp.sqrt(2)),
    ("truncnorm", -1.0, 2.0): truncated_normal_cf(-1.0, 2.0),
    ("truncnorm", 3.0, 3.125): truncated_normal_cf(3.0, 3.125),
    ("truncnorm", 5.0, INF): truncated_normal_cf(5.0, mp.inf),
    ("truncnorm", -INF, 1.0): truncated_normal_cf(-mp.inf, 1.0),
    ("truncexpon", 0.125): lambda t: mp.expm1((1j * t - 1) / 8) / mp.expm1(-mp.mpf(1) / 8) / (1 - 1j * t),
    ("truncexpon", 5.0): lambda t: mp.expm1(5 * (1j * t - 1)) / mp.expm1(-5) / (1 - 1j * t),
    ("uniform",): lambda t: mp.expm1(1j * t) / (1j * t),
    ("triang", 0.3): piecewise_linear_cf(0.3, 0.3),
    ("triang", 0.0): piecewise_linear_cf(0, 0),
    ("triang", 1.0): piecewise_linear_cf(1, 1),
    ("trapezoid", 0.2, 0.9): piecewise_linear_cf(0.2, 0.9),
    ("beta", 2.0, 5.0): beta_cf(2, 5),
    ("beta", 0.5, 0.25): beta_cf(0.5, 0.25),
    ("beta", 0.1, 0.1): beta_cf(0.1, 0.1),
    ("beta", 0.01, 0.01): beta_cf(0.01, 0.01),
    ("beta", 0.1, 50.0): beta_cf(0.1, 50),
    ("powerlaw", 0.05): beta_cf(0.05, 1),
    ("powerlaw", 1.75): beta_cf(1.75, 1),
    ("arcsine",): beta_cf(0.5, 0.5),
    ("semicircular",): lambda t: 2 * mp.besselj(1, t) / t,
    ("rdist", 3.5): beta_cf(1.75, 1.75, -1, 1),
    ("genpareto", -0.5): beta_cf(1, 2, 0, 2),
    ("cosine",): lambda t: mp.sin(mp.pi * t) / (mp.pi * t * (1 - t * t)) if t not in (1, -1) else mp.mpf(0.5),
    ("t", 3.0): student_cf(3),
    ("t", 2.25): student_cf(2.25),
    ("t", 30.0): student_cf(30),
    ("bernoulli", 0.3): lambda t: 1 + third * mp.expm1(1j * t),
    ("binom", 7.0, 0.3): lambda t: (1 + third * mp.expm1(1j * t)) ** 7,
    ("poisson", 3.25): lambda t: mp.exp(3.25 * mp.expm1(1j * t)),
    ("geom", 0.3): lambda t: third * mp.exp(1j * t) / (1 - (1 - third) * mp.exp(1j * t)),
    ("nbinom", 2.5, 0.3): lambda t: (third / (1 - (1 - third) * mp.exp(1j * t))) ** 2.5,
}


def assert_close(got, expected, t, scale=5.0):
    """Relative accuracy of log phi; where the logarithm is large, 1e-15 absolute in phi is enough."""
    size = float(abs(expected))
    # The phase of exp(itM) cannot be known better than its rounding.
    allowed = 4e-15 * max(size, abs(t) * scale)
    if size > 1:
        allowed = max(allowed, 4e-15 * np.exp(min(700.0, -float(expected.real))))
    assert distance(got, expected) <= allowed, (t, got, expected)


@pytest.mark.parametrize("key", ORACLES, ids=str)
def test_closed_form_equals_mpmath_on_the_real_line(key):
    logcf = law(*key).logcf
    for r in SIZES:
        for t in (r, -r):
            mp.mp.dps = 40 + int(r)
            assert_close(logcf(np.array([t + 0j]))[0], mp.log(ORACLES[key](mp.mpc(t))), t)


@pytest.mark.parametrize("key", [key for key in ORACLES if law(*key).sector > 0.7], ids=str)
def test_closed_form_continues_along_rays_around_both_half_lines(key):
    logcf = law(*key).logcf
    for angle in (0.3, -0.3, 0.7, -0.7):
        for r in (1e-8, 0.3, 2.0, 11.0, 60.0):
            t = r * complex(np.exp(1j * angle))
            if key[0] == "t" and r > 3:
                continue
            got = logcf(np.array([t, -t]))
            # phi(-t) = conj(phi(conj t)): one half line follows from the other
            mirrored = logcf(np.array([t.conjugate()]))[0].conjugate()
            assert distance(got[1], mp.mpc(complex(mirrored))) <= 1e-13 * max(1.0, abs(mirrored))
            mp.mp.dps = 40 + int(r)
            expected = mp.log(ORACLES[key](mp.mpc(t)))
            assert distance(got[0], expected) <= 2e-13 * float(abs(expected)), (t, got[0], expected)


@pytest.mark.parametrize("key", [key for key in ORACLES if law(*key).strip != (0, 0)], ids=str)
def test_cumulant_generating_function_is_real_and_right_on_the_strip(key):
    known = law(*key)
    for end in known.strip:
        for fraction in (1e-6, 0.2, 0.9):
            s = fraction * (np.sign(end) * 3.0 if np.isinf(end) else end)
            mp.mp.dps = 60
            expected = mp.log(ORACLES[key](mp.mpc(0, -s)))
            got = known.logcf(np.array([-1j * s]))[0]
            assert abs(got.imag) <= 1e-14 * max(1.0, abs(got.real))
            assert float(abs(mp.mpf(got.real) - expected.real)) <= 4e-15 * max(
                abs(s) * 5, float(abs(expected))
            )


@pytest.mark.parametrize(
    "key", [key for key in ORACLES if standard_cumulants(key[0], key[1:], 4) is not None], ids=str
)
def test_logcf_starts_as_its_cumulant_series(key):
    kappa = np.nan_to_num(standard_cumulants(key[0], key[1:], 4))
    t = np.array(
        [1e-8 * np.exp(1j * angle) for angle in ((0.0, 0.5, -0.5) if law(*key).sector > 0.5 else (0.0,))]
    )
    series = 1j * kappa[0] * t - kappa[1] * t**2 / 2 - 1j * kappa[2] * t**3 / 6
    got = law(*key).logcf(t)
    # Student's law with 2.25 degrees of freedom has no third derivative at 0.
    rtol = 1e-14 if key[0] != "t" or key[1] >= 3.5 else 0.05
    np.testing.assert_allclose(got, series, rtol=rtol)


@pytest.mark.parametrize(
    "name", ["uniform", "logistic", "norm", "gumbel_r", "hypsecant", "semicircular", "expon", "cosine"]
)
def test_nothing_overflows_far_out(name):
    known = law(name)
    r = np.geomspace(1e3, 1e12, 20)
    for angle in (0.0, 0.4, -0.4):
        value = known.logcf(r * np.exp(1j * angle))
        assert np.all(np.isfinite(value.imag)), angle
        assert not np.any(np.isnan(value.real))


@pytest.mark.parametrize(
    ("key", "cf"),
    {
        ("beta", 0.1, 0.1): beta_cf(0.1, 0.1),
        ("beta", 0.001, 1.0): beta_cf(0.001, 1),
        ("beta", 50.0, 0.1): beta_cf(50, 0.1),
        ("beta", 0.1, 300.0): beta_cf(0.1, 300),
        ("beta", 160.0, 160.0): beta_cf(160, 160),
        ("genpareto", -0.005): beta_cf(1, 200, 0, 200),
        ("powerlaw", 300.0): beta_cf(300, 1),
        ("rdist", 300.0): beta_cf(150, 150, -1, 1),
    }.items(),
    ids=lambda part: "" if callable(part) else str(part),
)
def test_characteristic_functions_of_spikes_and_poles_are_right_at_every_frequency(key, cf):
    frozen = getattr(stats, key[0])(*key[1:])
    known = law(*key)
    for t in np.append([0.1, 1.0, 5.0, 15.0, 25.0, 100.0, 1e6], 3 * np.arange(1.0, 20.0)) / frozen.std():
        mp.mp.dps = 50 + int(np.log10(t) if t > 2000 else t / 4)
        got = mp.exp(mp.mpc(complex(known.logcf(np.array([t + 0j]))[0])))
        assert abs(got - cf(mp.mpf(float(t)))) < 1e-12, t


def test_logcf_is_zero_at_zero_and_keeps_the_shape():
    for key in [
        ("gamma", 2.0),
        ("uniform",),
        ("t", 3.0),
        ("lognorm", 1.0),
        ("beta", 2.0, 3.0),
        ("truncnorm", -1.0, 1.0),
    ]:
        t = np.zeros((2, 3), dtype=complex)
        value = law(*key).logcf(t)
        assert value.shape == (2, 3)
        assert np.all(value == 0)
        assert np.ndim(law(*key).logcf(np.array(0.5 + 0j))) == 0


def log_density(name, *shapes):
    """log(x f(x)) at x = e^v, not normalized, for the laws on a half line."""
    if name == "lognorm":
        return lambda v: -((v / shapes[0]) ** 2) / 2
    if name == "weibull_min":
        c = mp.mpf(shapes[0])
        return lambda v: c * v - mp.exp(c * v)
    if name == "chi":
        return lambda v: shapes[0] * v - mp.exp(2 * v) / 2
    if name == "invgamma":
        return lambda v: -shapes[0] * v - mp.exp(-v)
    if name == "lomax":
        return lambda v: v - (shapes[0] + 1) * mp.log(1 + mp.exp(v))
    if name == "f":
        n, d = shapes
        return lambda v: n / 2 * v - (n + d) / 2 * mp.log(1 + n * mp.exp(v) / d)
    c, d = shapes
    return lambda v: c * d * v - (d + 1) * mp.log(1 + mp.exp(c * v))


HALF_LINE = [
    ("lognorm", 1.0),
    ("lognorm", 0.25),
    ("weibull_min", 0.75),
    ("weibull_min", 1.5),
    ("chi", 30.0),
    ("invgamma", 3.0),
    ("lomax", 3.5),
    ("f", 29.0, 18.0),
    ("burr", 2.5, 1.5),
]


@pytest.mark.parametrize("key", HALF_LINE, ids=str)
def test_rotated_contour_equals_mpmath(key):
    mp.mp.dps = 18
    known, log_xf = law(*key), log_density(*key)
    contour = CONTOURS[key[0]](*key[1:])[0]
    center = np.log(law_mean(key))
    nodes = [
        center + k
        for k in (-60, -30, -15, -8, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 8, 15, 30)
    ]
    height = log_xf(center)
    total = mp.quad(lambda v: mp.exp(log_xf(v) - height), nodes)
    theta = 0.6 * known.sector
    for r, angle in ((1e-6, 0.0), (3.0, theta), (3.0, -theta)):
        t = r / law_mean(key) * complex(np.exp(1j * angle))
        turn = max(0.0, -angle) + min(contour.reach, (contour.opening - max(0.0, -angle)) / 2) / 2

        def integrand(v, t=t, turn=turn):
            x = mp.exp(v + 1j * turn)
            return mp.exp(log_xf(v + 1j * turn) - height) * mp.expm1(1j * t * x)

        expected = mp.log1p(mp.quad(integrand, nodes) / total)
        ray = np.append(t * np.geomspace(0.5, 2.0, 41), t)
        for got in (known.logcf(ray[-1:])[0], known.logcf(ray)[-1]):
            assert distance(got, expected) <= 2e-14 * float(abs(expected)), (t, got, expected)


def law_mean(key):
    return float(getattr(stats, key[0])(*key[1:]).mean())


def test_a_law_moved_to_zero_decays_on_every_ray():
    t = 10.0 ** np.arange(2, 30.0, 4.0) * np.exp(-0.6j)
    lomax = ScipyNoise(stats.lomax(2.5)).logcf(t)
    np.testing.assert_allclose(ScipyNoise(stats.pareto(2.5, loc=-1.0)).logcf(t).real, lomax.real, rtol=1e-12)


@pytest.mark.parametrize("df", [0.05, 0.2, 3.0])
def test_nodes_next_to_a_pole_count_by_their_moments(df):
    rule = CONTOURS["chi"](df)[0].rule(0)
    t = np.exp(np.linspace(-12, 12, 60) - 0.1j)
    expected = np.log(np.exp(1j * t[:, None] * rule.x) @ rule.weights)
    assert np.max(np.abs(np.expm1(rule.log_phi(t) - expected))) < 4e-13


def test_affine_relatives_share_one_contour():
    t = np.array([0.3, 2.0, -1.0]) + 0j
    lomax = law("lomax", 3.5).logcf(t)
    np.testing.assert_allclose(ScipyNoise(stats.pareto(3.5)).logcf(t), 1j * t + lomax, rtol=1e-14)
    np.testing.assert_allclose(law("genpareto", 1 / 3.5).logcf(t / 3.5), lomax, rtol=1e-13)
    np.testing.assert_allclose(
        law("weibull_max", 1.5).logcf(t), law("weibull_min", 1.5).logcf(-t), rtol=1e-14
    )
    np.testing.assert_allclose(law("fisk", 3.5).logcf(t), law("burr", 3.5, 1.0).logcf(t), rtol=1e-14)
    np.testing.assert_allclose(law("weibull_min", 1.0).logcf(t), law("expon").logcf(t), rtol=1e-13)
    np.testing.assert_allclose(law("gengamma", 0.25, 1.0).logcf(t), law("gamma", 0.25).logcf(t), rtol=1e-13)
    np.testing.assert_allclose(law("chi", 1.0).logcf(t), law("halfnorm").logcf(t), rtol=1e-13)
    np.testing.assert_allclose(law("gennorm", 2.0).logcf(t), -(t**2) / 4, rtol=1e-13)
    np.testing.assert_allclose(law("dweibull", 1.0).logcf(t), law("laplace").logcf(t), rtol=1e-13)
    np.testing.assert_allclose(
        ScipyNoise(stats.genextreme(0.4)).logcf(t),
        2.5j * t + law("weibull_min", 2.5).logcf(-2.5 * t),
        rtol=1e-13,
    )
    np.testing.assert_allclose(
        ScipyNoise(stats.genextreme(-0.2)).logcf(t), -5j * t + law("invweibull", 5.0).logcf(5 * t), rtol=1e-13
    )
    # its density, integrated: no contour there
    np.testing.assert_allclose(law("genextreme", 0.0).logcf(t), law("gumbel_r").logcf(t), rtol=1e-11)
    assert law("weibull_max", 1.5).strip == (-INF, INF)
    assert law("pareto", 3.5).strip == (-INF, 0.0)


def test_weibull_moment_generating_function_beyond_the_sector():
    # E exp(sX) for Rayleigh: 1 + s exp(s^2/2) sqrt(pi/2) (1 + erf(s/sqrt 2))
    for s in (0.1, 1.0, 5.0, 30.0, 300.0):
        expected = mp.log(
            1 + s * mp.exp(mp.mpf(s) ** 2 / 2) * mp.sqrt(mp.pi / 2) * (1 + mp.erf(s / mp.sqrt(2)))
        )
        got = law("rayleigh").logcf(np.array([-1j * s]))[0]
        assert abs(got - float(expected)) <= 1e-13 * float(expected)


@pytest.mark.parametrize("df", [0.2, 0.5, 3.0])
@pytest.mark.parametrize("s", [0.5, 6.0, 30.0])
def test_chi_laws_are_right_between_the_strip_and_the_sector(df, s):
    """There the factor exp(itx) both grows and oscillates; errors are relative to E exp(sM)."""
    a, half = mp.mpf(df) / 2, mp.mpf("0.5")
    ratio = 1j * mp.sqrt(2) * mp.gamma(a + half) / mp.gamma(a)

    def cf(t):
        even, odd = mp.hyp1f1(a, half, -t * t / 2), mp.hyp1f1(a + half, 3 * half, -t * t / 2)
        return even + ratio * t * odd

    t, log_largest = s * (np.array([0.0, 0.1, 0.5, 1.0, 1.4, 1.6, 3.0]) - 1j), mp.log(cf(mp.mpc(0, -s)).real)
    expected = [complex(cf(mp.mpc(z)) / mp.exp(log_largest)) for z in t]
    got = np.exp(law("chi", df).logcf(t) - float(log_largest))
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-13)


def test_exponential_moments_beyond_all_numbers_are_infinite():
    # log E exp(sX) for shape 1.05 is about 0.05 (s/1.05)^21: moderate at s = 1, huge at s = 7
    near_exponential = law("weibull_min", 1.05)
    expected = mp.log(
        mp.quad(lambda x: 1.05 * x**0.05 * mp.exp(x - x ** mp.mpf(1.05)), [0, 1, 10, 30, 100, 300, 1000])
    )
    got = near_exponential.logcf(np.array([-1j, -7j]))
    assert abs(got[0] - float(expected)) < 1e-12
    assert np.isposinf(got[1].real)


@pytest.mark.parametrize(
    "key", [("lognorm", 0.5), ("t", 3.0), ("weibull_min", 0.75), ("betaprime", 2.0, 4.0)], ids=str
)
def test_table_agrees_with_direct_evaluation(key):
    known = law(*key)
    for angle in (0.0, 0.3, -0.3):
        t = np.geomspace(1e-12, 1e6, 70) * np.exp(1j * angle)
        table = known.logcf(np.concatenate([t, -t]))
        direct = np.array([known.logcf(point[None])[0] for point in np.concatenate([t, -t])])
        visible = direct.real > -30
        error = np.abs(np.expm1(table - direct))[visible]
        assert np.all(error <= 3e-14 * np.maximum(np.abs(direct), 1e-30)[visible])


@pytest.mark.parametrize(
    "key",
    [
        ("norm",),
        ("gamma", 0.25),
        ("beta", 0.5, 0.5),
        ("triang", 0.3),
        ("t", 3.0),
        ("laplace",),
        ("lognorm", 1.0),
        ("uniform",),
    ],
    ids=str,
)
def test_quadrature_of_a_density_agrees_with_better_knowledge(key):
    known, blind = law(*key), numerical(getattr(stats, key[0])(*key[1:]))
    assert blind.sector == 0
    t = np.geomspace(1e-6, 1e4, 60)
    t = np.concatenate([t, -t]) + 0j
    expected, got = known.logcf(t), blind.logcf(t)
    np.testing.assert_allclose(np.exp(got), np.exp(expected), rtol=0, atol=1e-13)
    small = np.abs(t) < 0.1
    np.testing.assert_allclose(got[small], expected[small], rtol=2e-13)


def test_laws_known_only_by_their_density():
    frozen = stats.gausshyper(2.0, 3.0, 1.5, 0.7)
    known = characteristic(ScipyNoise(frozen))
    assert known is characteristic(ScipyNoise(frozen))
    mp.mp.dps = 25

    def density(x):
        return x * (1 - x) ** 2 * (1 + 0.7 * x) ** -1.5

    total = mp.quad(density, [0, 1])
    for t in (1e-3, 2.0, 60.0):
        expected = mp.quadgl(lambda x, t=t: density(x) * mp.exp(1j * t * x), mp.linspace(0, 1, 20)) / total
        assert abs(np.exp(known.logcf(np.array([t + 0j]))[0]) - complex(expected)) <= 1e-14


def test_law_with_too_many_atoms_is_refused():
    with pytest.raises(ValueError, match="atoms"):
        summed(ScipyNoise(stats.zipf(2.5)))


def test_density_that_is_no_density_is_refused():
    class Half(stats.rv_continuous):
        def _pdf(self, x):
            return 0.25 * np.ones_like(x)

        def _cdf(self, x):
            return np.asarray(x)

        def _ppf(self, q):
            return np.asarray(q)

    with pytest.raises(ValueError, match=r"density of half\(\) integrates to"):
        numerical(Half(a=0.0, b=1.0, name="half")())


def test_discrete_law_is_the_sum_over_its_atoms():
    t = np.array([1e-8, 0.3, 3.0, 100.0]) + 0j
    got = summed(ScipyNoise(stats.binom(7, 0.3))).logcf(t)
    expected = law("binom", 7.0, 0.3).logcf(t)
    np.testing.assert_allclose(np.exp(got), np.exp(expected), rtol=0, atol=1e-13)
    np.testing.assert_allclose(got[:2], expected[:2], rtol=1e-13)
    skellam = characteristic(ScipyNoise(stats.skellam(3.0, 2.0))).logcf(t)
    np.testing.assert_allclose(
        np.exp(skellam), np.exp(3 * np.expm1(1j * t) + 2 * np.expm1(-1j * t)), rtol=0, atol=1e-13
    )


def test_atoms_handle_one_point_and_huge_scale():
    assert atoms(np.array([2.0]), np.array([1.0]))(np.array([3.0 + 0j]))[0] == 6j
    far = atoms(np.array([-1e150, 1e150]), np.array([0.5, 0.5]))
    np.testing.assert_allclose(far(np.array([1e-150 + 0j])), np.log(np.cos(1.0)), rtol=1e-14)


CUMULANT_CASES = {
    ("norm",): lambda s: s * s / 2,
    ("gamma", 0.25): lambda s: -0.25 * mp.log(1 - s),
    ("chi2", 3.0): lambda s: -1.5 * mp.log(1 - 2 * s),
    ("pearson3", -0.5): lambda s: -4 * s * -1 - 16 * mp.log(1 + s / 4),
    ("laplace",): lambda s: -mp.log(1 - s * s),
    ("laplace_asymmetric", 2.0): lambda s: -mp.log(1 - s / 2) - mp.log(1 + 2 * s),
    ("exponnorm", 1.5): lambda s: s * s / 2 - mp.log(1 - 1.5 * s),
    ("uniform",): lambda s: mp.log(mp.expm1(s) / s) if s else mp.mpf(0),
    ("logistic",): lambda s: mp.loggamma(1 - s) + mp.loggamma(1 + s),
    ("hypsecant",): lambda s: -mp.log(mp.cos(mp.pi * s / 2)),
    ("gumbel_r",): lambda s: mp.loggamma(1 - s),
    ("gumbel_l",): lambda s: mp.loggamma(1 + s),
    ("genlogistic", 0.3): lambda s: mp.loggamma(1 - s) + mp.loggamma(third + s) - mp.loggamma(third),
    ("loggamma", 2.5): lambda s: mp.loggamma(2.5 + s),
    ("moyal",): lambda s: mp.loggamma(0.5 - s) - s * mp.log(2),
    ("invgauss", 0.5): lambda s: 2 * (1 - mp.sqrt(1 - s / 2)),
    ("bernoulli", 0.3): lambda s: mp.log(1 + third * mp.expm1(s)),
    ("binom", 7.0, 0.3): lambda s: 7 * mp.log(1 + third * mp.expm1(s)),
    ("poisson", 3.25): lambda s: 3.25 * mp.expm1(s),
    ("geom", 0.3): lambda s: s - mp.log(1 - (1 - third) / third * mp.expm1(s)),
    ("nbinom", 2.5, 0.3): lambda s: -2.5 * mp.log(1 - (1 - third) / third * mp.expm1(s)),
}


@pytest.mark.parametrize("key", CUMULANT_CASES, ids=str)
def test_cumulants_are_derivatives_of_the_generating_function(key):
    mp.mp.dps = 60
    # Cauchy's integral on a circle, by the trapezoidal rule
    radius, n = mp.mpf("0.1"), 128
    points = [radius * mp.expjpi(mp.mpf(2 * k) / n) for k in range(n)]
    values = [CUMULANT_CASES[key](z) for z in points]
    got = standard_cumulants(key[0], key[1:], 8)
    for r in range(1, 9):
        expected = mp.factorial(r) * mp.fsum(v / z**r for v, z in zip(values, points, strict=True)).real / n
        assert float(abs(got[r - 1] - expected)) <= 1e-13 * float(abs(expected)) + 1e-15, r


MOMENT_CASES = {
    ("lognorm", 0.5): lambda k: mp.exp(mp.mpf(k) ** 2 / 8),
    ("weibull_min", 0.75): lambda k: mp.gamma(1 + k / mp.mpf(0.75)),
    ("weibull_min", 4.0): lambda k: mp.gamma(1 + k / mp.mpf(4)),
    ("chi", 3.0): lambda k: mp.mpf(2) ** (mp.mpf(k) / 2) * mp.gamma(mp.mpf(3 + k) / 2) / mp.gamma(1.5),
    ("beta", 2.0, 5.0): lambda k: mp.rf(2, k) / mp.rf(7, k),
    ("beta", 0.5, 0.25): lambda k: mp.rf(mp.mpf(0.5), k) / mp.rf(mp.mpf(0.75), k),
    ("beta", 0.1, 0.1): lambda k: mp.rf(mp.mpf(0.1), k) / mp.rf(2 * mp.mpf(0.1), k),
    ("powerlaw", 0.001): lambda k: mp.mpf(0.001) / (mp.mpf(0.001) + k),
    ("powerlaw", 1.75): lambda k: mp.mpf(1.75) / (mp.mpf(1.75) + k),
    ("arcsine",): lambda k: mp.rf(mp.mpf(0.5), k) / mp.factorial(k),
    ("triang", 0.25): lambda k: 2 * (1 - mp.mpf(0.25) ** (k + 1)) / (mp.mpf(0.75) * (k + 1) * (k + 2)),
    ("triang", 1.0): lambda k: mp.mpf(2) / (k + 2),
    ("t", 9.0): lambda k: (
        0 if k % 2 else 9 ** (k // 2) * mp.beta((k + 1) / mp.mpf(2), (9 - k) / mp.mpf(2)) / mp.beta(0.5, 4.5)
    ),
    ("pareto", 8.5): lambda k: mp.mpf(8.5) / (8.5 - k),
    ("invgamma", 8.5): lambda k: mp.gamma(8.5 - k) / mp.gamma(8.5),
    ("f", 3.0, 20.0): lambda k: (
        (mp.mpf(20) / 3) ** k * mp.gamma(1.5 + k) * mp.gamma(10 - k) / mp.gamma(1.5) / mp.gamma(10)
    ),
}


@pytest.mark.parametrize("key", MOMENT_CASES, ids=str)
def test_cumulants_equal_those_of_the_exact_moments(key):
    mp.mp.dps = 50
    raw = [mp.mpf(1)] + [mp.mpf(MOMENT_CASES[key](k)) for k in range(1, 9)]
    kappa = [mp.mpf(0)] * 9
    for r in range(1, 9):
        kappa[r] = raw[r] - sum(mp.binomial(r - 1, j - 1) * kappa[j] * raw[r - j] for j in range(1, r))
    got = standard_cumulants(key[0], key[1:], 8)
    for r in range(1, 9):
        # Odd and high orders cancel: the moments of the centered variable set the scale.
        scale = float(abs(kappa[r])) + float(kappa[2]) ** (r / 2) * float(mp.factorial(r))
        assert abs(got[r - 1] - float(kappa[r])) <= 1e-13 * scale, r


def test_moments_that_do_not_exist_are_nan():
    assert np.isnan(standard_cumulants("t", (5.0,), 8)).tolist() == [False] * 4 + [True] * 4
    assert np.isnan(standard_cumulants("pareto", (3.5,), 5)).tolist() == [False] * 3 + [True] * 2
    assert standard_cumulants("gausshyper", (2.0, 3.0, 1.5, 0.7), 4) is None


@pytest.mark.parametrize("name", sorted({*CLOSED_FORMS, *CONTOURS}))
def test_every_known_law_has_the_mean_and_variance_of_scipy(name):
    shapes = SHAPES.get(name, ())
    frozen = getattr(stats, name)(*shapes)
    mean, variance = (float(value) for value in frozen.stats("mv"))
    t = 1e-5 / np.sqrt(variance)
    value = ScipyNoise(frozen).logcf(np.array([t + 0j]))[0]
    assert abs(value.imag / t - mean) <= 1e-9 * (abs(mean) + np.sqrt(variance))
    assert abs(-2 * value.real / t**2 - variance) <= 1e-5 * variance
    kappa = standard_cumulants(name, shapes, 2)
    if kappa is not None:
        np.testing.assert_allclose(
            kappa, [mean, variance], rtol=1e-10, atol=1e-15
        )  # some of scipy's are integrals


SHAPES = {
    "gamma": (0.25,), "erlang": (3.0,), "chi2": (3.0,), "pearson3": (0.1,), "laplace_asymmetric": (2.0,), "dgamma": (2.5,),
    "exponnorm": (1.5,), "invgauss": (0.7,), "norminvgauss": (2.0, -1.0), "genlogistic": (0.3,), "loggamma": (2.5,),
    "skewnorm": (4.0,), "truncnorm": (-1.0, 2.0), "truncexpon": (5.0,), "triang": (0.3,), "trapezoid": (0.2, 0.9),
    "beta": (2.0, 5.0), "powerlaw": (1.7,), "rdist": (3.5,), "t": (9.0,), "genpareto": (0.1,), "gennorm": (1.5,),
    "dweibull": (1.5,), "bernoulli": (0.3,), "binom": (7.0, 0.3), "poisson": (3.3,), "geom": (0.3,), "nbinom": (2.5, 0.3),
    "lognorm": (0.5,), "weibull_min": (1.5,), "weibull_max": (1.5,), "gengamma": (2.0, 1.5), "halfgennorm": (1.5,),
    "chi": (3.0,), "nakagami": (2.0,), "invgamma": (6.5,), "invweibull": (6.5,), "lomax": (6.5,), "pareto": (6.5,),
    "betaprime": (2.0, 6.5), "f": (3.0, 15.0), "burr": (6.0, 1.5), "burr12": (3.0, 2.5), "fisk": (6.5,),
    "mielke": (3.0, 6.5), "genextreme": (-0.1,),
}  # fmt: skip
