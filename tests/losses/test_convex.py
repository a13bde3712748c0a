"""Convex losses: the solver against other solvers, the laws against brute force and the linear estimate."""

import itertools
import warnings

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.optimize import minimize
from sklearn.linear_model import QuantileRegressor
from sklearn.svm import SVR

from wienerkernel import (
    RBF,
    EpsilonInsensitive,
    Huber,
    Matern,
    NegativeLogDensity,
    Pinball,
    WienerKernelRegressor,
    as_noise,
)
from wienerkernel.losses.convex import Curve
from wienerkernel.losses.coordinates import Coordinates, Observed
from wienerkernel.losses.estimate import _solve, fit_loss, spectrum
from wienerkernel.losses.score import Score, _mean, _slope, efficient_loss
from wienerkernel.losses.solver import minimize_loss

KERNELS = {"smooth": 4.21**2 * RBF(3.59), "rough": Matern(1.0, nu=0.5)}
LOSSES = [Huber(0.8), Pinball(0.5), Pinball(0.15), EpsilonInsensitive(0.3)]


def data(n=30, seed=0, law=None):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-5, 5, n))[:, None]
    return X, np.sin(X[:, 0]) + as_noise(law or stats.t(3)).rvs(n, random_state=rng)


def rho(curve, r):
    """The loss itself, by integrating psi from 0."""
    u = np.concatenate([[0.0], np.cumsum(np.diff(curve.r) * (curve.u[1:] + curve.u[:-1]) / 2)])
    inside = np.interp(r, curve.r, u) - np.interp(0.0, curve.r, u)
    piece = np.clip(r, curve.r[0], curve.r[-1])
    if isinstance(curve, Curve) and len(curve.r) == 2 and curve.r[0] < curve.r[1]:  # Huber: quadratic inside
        inside = piece**2 / 2
    return inside + np.where(r > piece, curve.u[-1], curve.u[0]) * (r - piece)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_solver_against_the_dual_box(kernel, loss):
    """min u'(K / lam + g I)u / 2 - y'u (+ epsilon |u|) over a box, by L-BFGS-B."""
    X, y = data()
    c = Coordinates.at(kernel, X)
    curve = loss.curve(None)
    found = minimize_loss(c.phi, c.precision, y[:, None], curve, 0.7)
    assert found.kkt[0] < 1e-10
    K, g = kernel(X) / 0.7, float(isinstance(loss, Huber))
    if isinstance(loss, EpsilonInsensitive):  # u = a - b with a, b >= 0
        K2 = np.block([[K, -K], [-K, K]])
        linear = np.concatenate([loss.epsilon - y, loss.epsilon + y])
        bounds = [(0, 1)] * 60
    else:
        K2, linear, bounds = K + g * np.eye(30), -y, [(curve.u[0], curve.u[-1])] * 30
    options = {"maxiter": 10**6, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-12}
    dual = minimize(
        lambda u: (0.5 * u @ K2 @ u + linear @ u, K2 @ u + linear),
        np.zeros(len(linear)),
        jac=True,
        bounds=bounds,
        options=options,
    ).x
    dual = dual[:30] - dual[30:] if len(dual) == 60 else dual
    np.testing.assert_allclose(c.phi @ found.w[:, 0], K @ dual, atol=2e-4)


def test_solver_against_support_vector_regression():
    X, y = data(60)
    kernel = KERNELS["smooth"]
    c = Coordinates.at(kernel, X, "constant")
    for epsilon in (0.0, 0.2):
        found = minimize_loss(c.phi, c.precision, y[:, None], EpsilonInsensitive(epsilon).curve(None), 0.5)
        svr = SVR(kernel="precomputed", C=2.0, epsilon=epsilon, tol=1e-9).fit(kernel(X), y)
        np.testing.assert_allclose(c.phi @ found.w[:, 0], svr.predict(kernel(X)), atol=1e-4)


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.8])
def test_solver_against_quantile_regression(tau):
    """A linear trend and hardly any kernel."""
    X, y = data(41)
    c = Coordinates.at(1e-8 * RBF(1.0), X, "linear")
    found = minimize_loss(c.phi, c.precision, y[:, None], Pinball(tau).curve(None), 1.0)
    expected = QuantileRegressor(quantile=tau, alpha=0.0).fit(X, y).predict(X)
    np.testing.assert_allclose(c.phi @ found.w[:, 0], expected, atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_no_other_function_of_three_samples_is_better(loss):
    X, y = np.array([[0.0], [0.7], [2.0]]), np.array([1.0, -0.4, 2.5])
    c = Coordinates.at(2.0 * RBF(1.0), X)
    curve = loss.curve(None)
    found = minimize_loss(c.phi, c.precision, y[:, None], curve, 0.3).w[:, 0]

    def objective(w):
        return rho(curve, y - c.phi @ w).sum() + 0.15 * w @ w

    brute = min(
        minimize(
            objective, start, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 10**5}
        ).fun
        for start in np.random.default_rng(0).standard_normal((10, 3))
    )
    assert objective(found) <= brute + 1e-9
    assert objective(found) > brute - 1e-4


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("trend", [None, "constant", "linear"])
def test_ugly_data(loss, trend):
    """Repeated inputs, equal values, a huge outlier, several columns at once: all optimal."""
    X = np.repeat(np.linspace(-1, 1, 6), 3)[:, None]
    rng = np.random.default_rng(0)
    outlier = np.where(np.arange(18) == 4, 1e6, rng.standard_normal(18))
    Y = np.stack(
        [np.zeros(18), np.ones(18), rng.standard_normal(18), outlier, np.round(rng.standard_normal(18))],
        axis=1,
    )
    observed = Observed.of(X, Y[:, 0], np.ones(18))
    c = Coordinates.at(RBF(1.0), observed.places, trend)
    found = _solve(c, observed, loss.curve(None), 0.5, Y, 0.0)
    assert np.all(found.kkt < 1e-9)
    for k in range(5):
        alone = _solve(c, observed, loss.curve(None), 0.5, Y[:, [k]], 0.0)
        if k != 1 or trend is None:  # the quantiles of equal values and flat losses need not be unique
            np.testing.assert_allclose(rho(loss.curve(None), Y[:, k] - (c.phi @ found.w[:, k])[observed.index]).sum(), rho(loss.curve(None), Y[:, k] - (c.phi @ alone.w[:, 0])[observed.index]).sum(), rtol=1e-5, atol=1e-5)  # fmt: skip


@pytest.mark.parametrize("law", [stats.gamma(0.25, scale=2), stats.t(3), stats.lognorm(1.0)])
def test_constants_of_a_loss(law):
    noise = as_noise(law)
    for loss in (Huber(0.5), Pinball(0.3), EpsilonInsensitive(0.2)):
        curve = loss.curve(noise)
        score = Score.of(curve, noise, np.array([10.0, 1.0, 0.1] + [0.0] * 97))
        breaks = sorted({*(curve.r + score.center)})
        for power, expected in ((1, 0.0), (2, score.square)):
            pieces = [
                max(law.support()[0], -2000),
                *[b for b in breaks if b > law.support()[0]],
                50.0,
                2000.0,
            ]

            def integrand(m, curve=curve, c=score.center, power=power):
                return np.interp(m - c, curve.r, curve.u) ** power * law.pdf(m)

            value = sum(integrate.quad(integrand, a, b, limit=500)[0] for a, b in itertools.pairwise(pieces))
            assert abs(value - expected) < 2e-4
        step = 1e-4 * law.std()
        if isinstance(loss, Huber):  # h is a derivative of E psi; the smoothing is small for it
            slope = -(
                _mean(curve, noise, score.center + step, 1) - _mean(curve, noise, score.center - step, 1)
            ) / (2 * step)
            assert abs(score.slope / slope - 1) < 0.1


def test_huber_with_a_large_threshold_is_the_squared_loss():
    X, y = data(25, law=stats.gamma(2.0))
    scale = np.random.default_rng(1).uniform(0.5, 2, 25)
    Q = np.linspace(-7, 7, 9)[:, None]
    for trend in (None, "constant"):
        options = {"noise": stats.gamma(2.0), "trend": trend, "tuning": None, "random_state": 0}
        linear = WienerKernelRegressor(KERNELS["smooth"], **options).fit(X, y, scale)
        expected, parts = linear.predict(Q), linear.uncertainty(Q)
        for law, tolerance in (("bootstrap", 0.1), ("influence", 0.02), ("lifted", 0.1)):
            model = WienerKernelRegressor(
                KERNELS["smooth"], loss=Huber(1e3, law=law, n_draws=4000), **options
            ).fit(X, y, scale)
            np.testing.assert_allclose(model.predict(Q), expected, atol=1e-4)
            ours = model.uncertainty(Q)
            np.testing.assert_allclose(ours.noise, parts.noise, rtol=tolerance)
            np.testing.assert_allclose(ours.model, parts.model, rtol=1e-3, atol=1e-6)
            for of in ("estimate", "function", "observation"):
                a, b = (m.predict_distribution(Q, of=of) for m in (model, linear))
                shift = 0 if law != "lifted" else a.mean() - b.mean()  # (9) keeps the mean of the noise
                np.testing.assert_allclose(a.ppf(0.2) - shift, b.ppf(0.2), atol=0.12 * b.std().max())


@pytest.mark.parametrize("loss", [Huber(0.5, law="influence"), Pinball(0.3, law="influence")], ids=repr)
def test_influence_law_has_the_moments_of_its_draws(loss):
    X, y = data()
    options = {"noise": "t(3)", "tuning": None, "random_state": 0}
    model = WienerKernelRegressor(KERNELS["smooth"], loss=loss, **options).fit(X, y)
    posterior, Q = model.posterior_, np.array([[-4.0], [0.0], [0.5]])
    if isinstance(loss, Pinball):  # psi takes two values
        assert posterior.weights.psi.var() == pytest.approx(0.3 * 0.7 / posterior.score.slope**2)
    law = posterior.distribution(Q, "function")
    draws = law.rvs(40_000, random_state=1)
    mean, covariance = posterior.mean_and_covariance(Q)
    np.testing.assert_allclose(np.diag(covariance), law.var(), rtol=1e-6)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.03 * covariance.max())
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.02 * np.sqrt(covariance.max()))
    np.testing.assert_allclose(np.quantile(draws, 0.2, axis=0), law.ppf(0.2), atol=0.03 * law.std().max())


@pytest.mark.parametrize(
    ("law", "loss", "tolerance"),
    [
        (stats.gamma(0.25, scale=2), Huber(1.0), 0.06),
        (stats.t(3), Huber(1.0), 0.05),
        (stats.gamma(0.25, scale=2), Pinball(0.5), 0.06),
        (stats.laplace(), Pinball(0.5), 0.05),
    ],
)
def test_bootstrap_against_brute_force(law, loss, tolerance):
    """Standard deviation of the estimate over 2400 data sets, and over bootstrap draws from several of them.

    The function is one that the kernel can be for: a bias of the estimate changes the density of the noise at the fit.
    """
    rng = np.random.default_rng(0)
    X = np.linspace(-5, 5, 80)[:, None]
    f = KERNELS["smooth"](X, np.array([[-4.0], [1.0], [5.0]])) @ np.array([0.2, -0.1, 0.1])
    observed = Observed.of(X, f, np.ones(80))
    c = Coordinates.at(KERNELS["smooth"], observed.places)
    noise = as_noise(law)
    curve = loss.curve(noise)
    score = Score.of(curve, noise, spectrum(c, observed))
    Y = f[:, None] + law.rvs((80, 2400), random_state=rng)
    fits = _solve(c, observed, curve, score.square / score.slope, Y, score.center).w
    phi = c.features(np.array([[0.5], [3.0]]))[0]
    true = (phi @ fits).std(axis=1)
    found = []
    for k in range(8):
        one = Observed(Y[:, k], observed.scale, observed.index, observed.places)
        model = fit_loss(c, one, noise, loss, setting="", ridge=None, generator=rng)
        found.append(np.sqrt(model.weights.variance(phi)))
    np.testing.assert_allclose(np.mean(found, axis=0), true, rtol=tolerance)
    assert np.all(true < 0.95 * np.sqrt(law.var()))


def test_efficient_losses():
    """Huber with a wide range for normal noise, a low quantile for Gamma noise, its mirror image for the reflected."""
    values = np.concatenate([np.geomspace(1e3, 1e-6, 12), np.zeros(88)])
    assert isinstance(efficient_loss(as_noise("norm()"), values), Huber)
    low = efficient_loss(as_noise("gamma(0.25, scale=2)"), values)
    assert isinstance(low, Pinball)
    assert low.tau <= 0.2
    median = efficient_loss(as_noise("laplace()"), values)
    assert isinstance(median, Huber) or median.tau == 0.5


@pytest.mark.parametrize("law", ["logistic()", "gumbel_r()", "norm(0, 2)", "laplace()", "gamma(3)"])
def test_negative_log_density_is_the_posterior_mode(law):
    X, y = data(20, law=law)
    model = WienerKernelRegressor(
        RBF(1.0), noise=law, loss=NegativeLogDensity(), trend=None, tuning=None, random_state=0
    ).fit(X, y)
    c, w, frozen = model.posterior_.coordinates, model.posterior_.estimate, as_noise(law).frozen

    def objective(w):
        return -frozen.logpdf(y - model.posterior_.score.center - c.phi @ w).sum() + 0.5 * w @ w

    rng = np.random.default_rng(0)
    for size in (1e-2, 1e-1):
        for _ in range(20):
            assert objective(w) <= objective(w + size * rng.standard_normal(len(w))) + 1e-6


def test_quantile_curves_do_not_cross():
    X, y = data(60)
    model = WienerKernelRegressor(
        KERNELS["smooth"], noise="t(3)", loss="absolute", tuning=None, random_state=0
    ).fit(X, y)
    taus = np.array([0.9, 0.1, 0.5, 0.75, 0.25])
    curves = model.posterior_.quantile_curves(np.linspace(-8, 8, 50)[:, None], taus)
    assert np.all(np.diff(curves[:, np.argsort(taus)], axis=1) >= 0)
    inside = model.posterior_.quantile_curves(X, taus)
    for k, tau in enumerate(taus):
        assert abs(np.mean(y <= inside[:, k] + 1e-9) - tau) < 0.12


def test_equal_levels_have_equal_quantile_curves():
    """Also where curves cross and are sorted."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-3, 3, (12, 1)), axis=0)
    y = np.sin(X[:, 0]) + 2 + 0.2 * rng.standard_t(4, 12)
    model = WienerKernelRegressor(
        RBF(1.0), noise="laplace(0, 0.2)", loss="absolute", tuning=None, random_state=0
    )
    find = model.fit(X, y).posterior_.quantile_curves
    Q = np.linspace(-4, 4, 3)[:, None]
    np.testing.assert_array_equal(find(Q, [0.9, 0.1, 0.5, 0.5]), find(Q, [0.1, 0.5, 0.9])[:, [2, 0, 1, 1]])
    assert find(Q, 0.5).shape == (3, 1)


def test_quantile_curves_of_skewed_data_on_their_own_scale():
    X, y = data(40)
    model = WienerKernelRegressor(
        KERNELS["smooth"], noise="norm(0, 0.5)", loss="absolute", transform="log", tuning=None, random_state=0
    ).fit(X, np.exp(y))
    curves = model.posterior_.quantile_curves(X, [0.2, 0.8])
    plain = WienerKernelRegressor(
        KERNELS["smooth"], noise="norm(0, 0.5)", loss="absolute", tuning=None, random_state=0
    ).fit(X, y)
    np.testing.assert_allclose(curves, np.exp(plain.posterior_.quantile_curves(X, [0.2, 0.8])))
    with pytest.raises(ValueError, match="tau must lie strictly between 0 and 1, got 1"):
        plain.posterior_.quantile_curves(X, [0.5, 1.0])


@pytest.mark.parametrize("tau", [0.5, 0.03])
@pytest.mark.parametrize("trend", [None, "linear"])
def test_interior_points_and_multipliers_agree(trend, tau):
    """With a third vertex in the step, the method of multipliers is used, which smooths it."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-5, 5, 60))[:, None]
    X[1] = X[0]
    Y = np.sin(X) + rng.standard_t(2, (60, 40))
    Y[:2, 1] = 0.3  # the same sample twice
    Y[:, 2] = 0.0
    Y[:, 3] = np.round(Y[:, 3])
    Y[:, 4] *= 1e6
    c = Coordinates.at(KERNELS["smooth"], X, trend)
    curve = Pinball(tau).curve(None)
    ours = minimize_loss(c.phi, c.precision, Y, curve, 0.7)
    smoothed = Curve(np.zeros(3), np.array([curve.u[0], 0.0, curve.u[1]]))
    theirs = minimize_loss(c.phi, c.precision, Y, smoothed, 0.7)
    assert np.max(ours.kkt) < 1e-10
    assert np.all((ours.u >= curve.u[0]) & (ours.u <= curve.u[1]))
    size = np.maximum(np.abs(Y).max(axis=0), 1.0)
    np.testing.assert_allclose(c.phi @ ours.w / size, c.phi @ theirs.w / size, atol=1e-6)


@pytest.mark.parametrize("size", [1e4, 1e6])
@pytest.mark.parametrize("trend", [None, "constant", "linear"])
def test_huber_with_a_small_threshold_is_the_median_loss(size, trend):
    """Newton steps from residuals beyond the threshold did not reach the minimum."""
    X, y = np.arange(8.0)[:, None], size * np.random.default_rng(0).standard_normal((8, 5))
    c = Coordinates.at(size**2 * RBF(2.0), X, trend)
    found = [
        minimize_loss(c.phi, c.precision, y, loss.curve(None), size) for loss in (Huber(0.5), Pinball(0.5))
    ]
    assert np.max(found[0].kkt) < 1e-8
    costs = [
        0.5 * np.abs(y - c.phi @ w).sum(axis=0) + 0.5 * size * c.precision @ w**2
        for w in (f.w for f in found)
    ]
    np.testing.assert_allclose(costs[0], costs[1], rtol=1e-3)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("trend", ["constant", "linear"])
def test_a_trend_takes_the_units_and_the_offset_of_y(loss, trend):
    """A large offset once left the minimum unreached, and small units ended in division by 0."""
    X, y = data(60)
    c = Coordinates.at(RBF(1.0), X, trend)
    expected = c.phi @ minimize_loss(c.phi, c.precision, y[:, None], loss.curve(None), 1.0).w
    for unit in (1e-8, 1.0, 1e8):
        for offset in (1.0, 1e8):
            curve = Curve(unit * loss.curve(None).r, loss.curve(None).u)
            trending = unit * (y + offset * (1.0 if trend == "constant" else 1 + X[:, 0]))
            scaled = Coordinates.at(unit**2 * RBF(1.0), X, trend)
            found = minimize_loss(scaled.phi, scaled.precision, trending[:, None], curve, unit)
            assert np.max(found.kkt) < 1e-10
            plain = (scaled.phi @ found.w - (trending - unit * y)[:, None]) / unit
            np.testing.assert_allclose(plain, expected, atol=1e-6 * max(1.0, 1e-6 * offset))


@pytest.mark.parametrize("length", [3.0, 0.1])
def test_samples_that_are_not_used_do_not_count(length):
    X, y = data(80)
    c = Coordinates.at(RBF(length), X, "constant")  # few coordinates, and as many as samples
    used = (np.random.default_rng(1).uniform(size=(80, 6)) < 0.8).astype(float)
    found = minimize_loss(
        c.phi, c.precision, np.repeat(y[:, None], 6, axis=1), Pinball(0.3).curve(None), 0.5, used
    )
    assert np.max(found.kkt) < 1e-10
    for k in range(6):
        rest = used[:, k] > 0
        alone = minimize_loss(c.phi[rest], c.precision, y[rest, None], Pinball(0.3).curve(None), 0.5)
        np.testing.assert_allclose(found.w[:, k], alone.w[:, 0], atol=1e-8)


def test_loss_that_is_flat_over_the_noise():
    X, y = data()
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.001)", loss=EpsilonInsensitive(0.1), tuning=None)
    with pytest.raises(ValueError, match="set a smaller epsilon"):
        model.fit(X, y)


def test_bad_input():
    X, y = data()
    for loss, noise, message in (
        ("huber", "t(3)", "loss must be 'squared', 'absolute'"),
        (3, "t(3)", "loss must be"),
        (NegativeLogDensity(), "t(3)", "not convex"),
        (NegativeLogDensity(), "gamma(0.25)", "ends abruptly"),
        (NegativeLogDensity(), "lognorm(1)", "not convex"),
        (NegativeLogDensity(), [-1.0, 0.0, 1.0], "SmoothedResiduals"),
    ):
        with pytest.raises(ValueError, match=message):
            WienerKernelRegressor(RBF(1.0), noise=noise, loss=loss, tuning=None).fit(X, y)
    with pytest.raises(ValueError, match="exclude each other"):
        WienerKernelRegressor(noise="t(3)", loss="absolute", inference="ep", tuning=None).fit(X, y)
    for tau in (0.0, 1.0, -1, np.nan):
        with pytest.raises(ValueError, match="tau must lie strictly between 0 and 1"):
            Pinball(tau)
    with pytest.raises(ValueError, match="delta"):
        Huber(0.0)
    with pytest.raises(ValueError, match="epsilon"):
        EpsilonInsensitive(-1.0)
    with pytest.raises(ValueError, match="law must be one of"):
        Huber(law="jackknife")
    model = WienerKernelRegressor(RBF(1.0), noise="t(3)", loss="absolute", tuning=None, random_state=0).fit(
        X, y
    )
    with pytest.raises(ValueError, match="linear in y; the model has loss='absolute'"):
        model.bound(X, norm=1.0)


def test_losses_work_with_discrete_noise_and_tuning():
    """Recorded residuals have no density, which Huber's loss does not need."""
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = WienerKernelRegressor(
            RBF(1.0), noise=[-9.0, -1.0, -0.5, 0.2, 1.0, 9.0], loss=Huber(0.5), random_state=0
        ).fit(X, y)
    assert np.all(np.isfinite(model.predict(X)))
    assert model.tuning_result_ is not None


@pytest.mark.parametrize("noise", ["norm(0, 1)", "gamma(0.5, scale=2)", "t(3)"])
@pytest.mark.parametrize("spread", [0.5, 2.0, 1e3, 1e6])
def test_the_slope_of_a_loss_is_smoothed_on_any_scale(noise, spread):
    law = as_noise(noise)
    M = law.ppf((np.arange(100_000) + 0.5) / 100_000)
    expected = np.mean(np.diff(stats.norm.cdf((np.array([[-0.1], [0.1]]) + 0.3 - M) / spread), axis=0))
    np.testing.assert_allclose(_slope(Huber(0.1).curve(law), law, 0.3, spread), expected, rtol=0.02)


@pytest.mark.parametrize("outlier", [1e2, 1e3, 1e4])
def test_one_outlier_hardly_moves_an_estimate_with_hubers_loss(outlier):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 3, (40, 1))
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=40)
    y[-1] = outlier
    model = WienerKernelRegressor(noise="norm", loss=Huber(1.0)).fit(X, y)
    np.testing.assert_allclose(model.predict(X[:-1]), np.sin(X[:-1, 0]), atol=0.6)


@pytest.mark.parametrize("loss", ["absolute", Pinball(0.9)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_targets_that_do_not_vary(loss):
    X = np.random.default_rng(0).uniform(0, 3, (40, 2)).round(2)
    model = WienerKernelRegressor(noise="norm", loss=loss).fit(X, np.full(40, 3.0))
    np.testing.assert_allclose(model.predict_interval(X[:3]), 3.0, atol=1e-3)
