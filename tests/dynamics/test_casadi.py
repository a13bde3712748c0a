"""CasADi functions against the predictions and gradients of the model."""

import sys

import numpy as np
import pytest

from wienerkernel import (
    RBF,
    Constant,
    Dynamics,
    FeatureMap,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    WienerKernelRegressor,
)

ca = pytest.importorskip("casadi")

KERNELS = {
    "rbf": 2.0 * RBF([1.0, 2.0]),
    "matern12": Matern(1.5, nu=0.5),
    "matern32": 2.0 * Matern([1.0, 2.0]),
    "matern52": Matern(1.5, nu=2.5) + Constant(0.3),
    "rational": RationalQuadratic(1.2, 0.7),
    "periodic": Periodic(1.0, 3.0) * RBF(2.0),
    "linear": Linear([1.0, 2.0]) + RBF(1.0),
    "polynomial": Polynomial(3, 1.0, 2.0),
}


def data(n=25, n_y=1):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n, 2))
    X[-4:] = X[:4]
    Y = np.column_stack([np.sin(X[:, 0]) + X[:, 1], np.cos(X[:, 1])])[:, :n_y]
    return X, (Y if n_y > 1 else Y[:, 0]) + rng.gamma(0.5, 0.2, Y.shape if n_y > 1 else n)


def compare(model, function, points):
    """Values to 1e-12 and derivatives to 1e-8, relative to the size of the kernel."""
    x = ca.MX.sym("x", points.shape[1])
    slopes = ca.Function("slopes", [x], [ca.jacobian(value, x) for value in function(x)])
    size = float(model.kernel_.diag(points).max())
    for point in points:
        mean, parts = model.predict(point[None], return_uncertainty=True)
        gradient = model.predict_gradient(point[None])
        values, derivatives = function(point), slopes(point)
        for k, expected in enumerate((mean, parts.noise, parts.model)):
            np.testing.assert_allclose(
                values[k].full().ravel(), np.ravel(expected), rtol=1e-12, atol=2e-12 * size
            )
        for k, expected in enumerate((gradient.mean, gradient.noise, gradient.model)):
            np.testing.assert_allclose(
                derivatives[k].full().ravel(), np.ravel(expected), rtol=1e-8, atol=1e-8 * size
            )


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("trend", [None, "linear"])
def test_expressions_agree_with_the_model(kernel, trend):
    model = WienerKernelRegressor(kernel, noise="gamma(0.5, scale=0.2)", tuning=None, trend=trend).fit(
        *data()
    )
    points = np.concatenate([np.random.default_rng(1).uniform(-2.5, 2.5, (4, 2)), data()[0][:1]])
    compare(model, model.to_casadi(callback=False), points)


@pytest.mark.parametrize("callback", [True, False])
def test_several_outputs_and_structured_noise(callback):
    X, Y = data(n_y=2)
    scale = np.random.default_rng(2).uniform(0.5, 2.0, len(X))
    model = WienerKernelRegressor(RBF(1.5), noise="gamma(0.5, scale=0.2)", ridge=0.1, tuning=None).fit(
        X, Y, scale
    )
    compare(model, model.to_casadi(callback=callback), np.random.default_rng(1).uniform(-2, 2, (3, 2)))
    correlated = np.eye(len(X)) + 0.1 * np.tri(len(X))
    model = WienerKernelRegressor(RBF(1.5), noise="norm(0, 0.2)", tuning=None).fit(X, Y[:, 0], correlated)
    compare(model, model.to_casadi(callback=callback), np.random.default_rng(1).uniform(-2, 2, (3, 2)))


def test_many_samples_and_other_kernels_are_called_back():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (320, 2))
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None).fit(X, np.sin(X[:, 0]))
    function = model.to_casadi()
    assert isinstance(function, ca.Callback)
    compare(model, function, X[:2] + 0.1)
    other = WienerKernelRegressor(
        FeatureMap(lambda X: np.hstack([X, X**2])), noise="norm(0, 0.1)", tuning=None
    )
    other.fit(X[:30], X[:30, 0])
    with pytest.raises(TypeError, match="callback=True"):
        other.to_casadi()
    mean = other.to_casadi(outputs="mean", callback=True)(X[40])
    assert float(mean) == pytest.approx(float(other.predict(X[40:41])[0]), rel=1e-12)


@pytest.mark.parametrize("learns", ["state", "increment"])
@pytest.mark.parametrize("callback", [True, False])
def test_dynamics_agree_with_their_mean(learns, callback):
    rng = np.random.default_rng(0)
    Z = rng.uniform(-2, 2, (30, 3))
    model = WienerKernelRegressor(RBF(2.0), noise="gamma(0.5, scale=0.1)", tuning=None).fit(Z, Z[:, :2] * 0.8)
    dynamics = Dynamics(model, learns=learns)
    function = dynamics.to_casadi("step", callback=callback)
    value, jacobian = dynamics.value_and_jacobian(Z[:1])
    x, u = ca.MX.sym("x", 2), ca.MX.sym("u", 1)
    slopes = ca.Function("slopes", [x, u], [ca.jacobian(function(x, u), ca.vertcat(x, u))])
    np.testing.assert_allclose(function(Z[0, :2], Z[0, 2:]).full().ravel(), value[0], rtol=1e-12)
    np.testing.assert_allclose(slopes(Z[0, :2], Z[0, 2:]).full(), jacobian[:, 0], atol=1e-8)


def test_a_minimum_is_found_by_ipopt():
    X, y = data()
    model = WienerKernelRegressor(RBF(1.5), noise="norm(0, 0.1)", tuning=None).fit(X, y)
    x = ca.MX.sym("x", 2)
    for callback in (False, True):
        function = model.to_casadi(outputs=("mean",), callback=callback)
        options = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes"}
        if callback:
            options["ipopt.hessian_approximation"] = "limited-memory"
        solver = ca.nlpsol("solver", "ipopt", {"x": x, "f": function(x)}, options)
        best = solver(x0=[-1.0, -1.0], lbx=-2, ubx=2)
        grid = np.stack(np.meshgrid(*[np.linspace(-2, 2, 81)] * 2), axis=-1).reshape(-1, 2)
        assert float(best["f"]) <= model.predict(grid).min() + 1e-3


def test_bad_arguments_are_refused(monkeypatch):
    model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match="outputs must be some of"):
        model.to_casadi(outputs=("std",))
    with pytest.raises(ValueError, match="callback must be"):
        model.to_casadi(callback="yes")
    logs = WienerKernelRegressor(noise="norm(0, 0.1)", transform="log", tuning=None).fit(
        [[0.0], [1.0]], [1.0, 2.0]
    )
    with pytest.raises(ValueError, match="without a transform"):
        logs.to_casadi()
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(ImportError, match=r"pip install 'wienerkernel\[casadi\]'"):
        model.to_casadi()
