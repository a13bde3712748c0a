"""Fitted models as functions of CasADi, for optimal control: matrix expressions, or a callback for many samples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import FloatArray
from ..backend import arrays
from ..kernels import Constant, Kernel, Linear, Matern, Periodic, Power, Product, RationalQuadratic, Sum
from ..kernels.stationary import SquaredExponential
from ..posterior import Posterior

if TYPE_CHECKING:
    from .dynamics import Dynamics

__all__ = ["dynamics_to_casadi", "model_to_casadi"]

OUTPUTS = ("mean", "noise", "model")
MOST = 300
"""Samples up to which a matrix expression is faster than a callback into Python."""


def casadi() -> Any:
    """The package, or ImportError that says how to install it."""
    try:
        import casadi as package
    except ImportError:
        raise ImportError("to_casadi needs the package casadi: pip install 'wienerkernel[casadi]'") from None
    return package


def model_to_casadi(posterior: Posterior, name: str, outputs: Sequence[str], callback: Any) -> Any:
    """See `WienerKernelRegressor.to_casadi`."""
    ca = casadi()
    wanted = (outputs,) if isinstance(outputs, str) else tuple(outputs)
    if not wanted or not set(wanted) <= set(OUTPUTS):
        raise ValueError(f"outputs must be some of {', '.join(map(repr, OUTPUTS))}, got {outputs!r}")
    if posterior.transform is not None:
        raise ValueError("to_casadi needs a model without a transform")
    if callback not in ("auto", True, False):
        raise ValueError(f"callback must be 'auto', True or False, got {callback!r}")
    if callback is True or (callback == "auto" and posterior.smoother.samples.n_places > MOST):
        return _callback(posterior, name, wanted)
    z = ca.MX.sym("x", posterior.smoother.places.shape[1])
    return ca.Function(name, [z], _expressions(posterior, z, wanted), ["x"], list(wanted))


def dynamics_to_casadi(dynamics: Dynamics, name: str, callback: Any) -> Any:
    """See `Dynamics.to_casadi`."""
    ca = casadi()
    dynamics._refuse_transform("to_casadi")
    p, q = dynamics.lags
    x, u = ca.MX.sym("x", dynamics.n_states * p), ca.MX.sym("u", dynamics.n_inputs * q)
    z, means = ca.vertcat(x, u), []
    for part in dynamics.parts:
        offset = np.array([law.mean() for law in part.laws] or [0.0])
        if part.own:
            level = part.posterior.level
            if getattr(level, "varies", level is not None) and np.any(offset != 0):
                raise ValueError("to_casadi needs a constant noise level, or noise of mean 0")
            offset = offset * part.posterior.output_scale
        inner = model_to_casadi(part.posterior, f"{name}_model", ("mean",), callback)
        dynamics._callbacks.append(inner)  # CasADi does not keep callbacks alive
        means.append(inner(z) + ca.DM(offset))
    following = ca.vertcat(*means)
    if dynamics.learns == "increment":
        following = following + x[: dynamics.n_states]
    return ca.Function(name, [x, u], [following], ["x", "u"], ["x_next"])


def _expressions(posterior: Posterior, z: Any, wanted: tuple[str, ...]) -> list[Any]:
    """Mean, V and P2 (n_y,) as expressions of z: products with matrices that are computed here."""
    ca, smoother = casadi(), posterior.smoother
    places = arrays.as_numpy(smoother.places).astype(np.float64)
    (k, prior), scale = _values(smoother.kernel, z, places), ca.DM(posterior.output_scale)
    h = _trend(smoother, z)
    mean = ca.mtimes(_matrix(smoother.dual).T, k)
    if smoother.trend.kind:
        mean = mean + ca.mtimes(_matrix(smoother.trend_coefficients).T, h)
    found = {"mean": mean * scale}
    if set(wanted) != {"mean"}:
        inverse = _matrix(smoother.inverse)
        b, solved = ca.mtimes(inverse, k), 0
        if smoother.trend.kind:
            AH = inverse @ _matrix(smoother.trend(smoother.places))
            solved = ca.mtimes(np.linalg.inv(_matrix(smoother.trend_information)), h - ca.mtimes(AH.T, k))
            b = b + ca.mtimes(AH, solved)
        samples = smoother.samples
        gain = float(posterior.noise.var()) * samples.gain
        for further in posterior.input_covariance():
            gain = gain + (_matrix(further) if gain.ndim == 1 else np.diag(_matrix(further)))
        # P2 = k(x, x) - b'(k + R b) + s'h, as in the conditioning of sample paths
        model = prior - ca.dot(b, k + _times(samples.regularizer, b))
        if smoother.trend.kind:
            model = model + ca.dot(solved, h)
        found["noise"] = ca.dot(b, _times(gain, b)) * scale**2
        found["model"] = ca.fmax(model, 0) * scale**2
    return [found[output] for output in wanted]


def _matrix(values: Any) -> FloatArray:
    return np.asarray(arrays.as_numpy(values), dtype=np.float64)


def _times(covariance: FloatArray, b: Any) -> Any:
    return casadi().DM(covariance) * b if covariance.ndim == 1 else casadi().mtimes(covariance, b)


def _trend(smoother: Any, z: Any) -> Any:
    """h(z), from its value at 0 and its gradient."""
    slope = _matrix(smoother.trend.gradient)
    zero = arrays.like(np.zeros((1, slope.shape[1])), smoother.places)
    return casadi().DM(_matrix(smoother.trend(zero))[0]) + casadi().mtimes(slope, z)


@singledispatch
def _values(kernel: Kernel, z: Any, places: FloatArray) -> tuple[Any, Any]:  # noqa: ARG001
    """k(z, places), (U,), and k(z, z)."""
    raise TypeError(f"{type(kernel).__name__} has no expression for CasADi; use callback=True")


def _squares(
    kernel: Any, z: Any, places: FloatArray, distance: Any = lambda difference, _: difference
) -> Any:
    scales = np.broadcast_to(np.asarray(kernel.length_scale, dtype=float), places.shape[1])
    return kernel._factor * sum(
        (distance(z[i] - casadi().DM(places[:, i]), i) / scales[i]) ** 2 for i in range(len(scales))
    )


@_values.register
def _(kernel: SquaredExponential, z: Any, places: FloatArray) -> tuple[Any, Any]:
    return casadi().exp(_squares(kernel, z, places)), 1.0


@_values.register
def _(kernel: Periodic, z: Any, places: FloatArray) -> tuple[Any, Any]:
    ca, periods = casadi(), np.broadcast_to(np.asarray(kernel.period, dtype=float), places.shape[1])
    waves = _squares(kernel, z, places, lambda difference, i: 2 * ca.sin(np.pi / periods[i] * difference))
    return ca.exp(waves), 1.0


@_values.register
def _(kernel: Matern, z: Any, places: FloatArray) -> tuple[Any, Any]:
    ca = casadi()
    q = _squares(kernel, z, places)
    s = ca.sqrt(q + 1e-300)  # its derivative at 0 is finite, and multiplied by 0
    return {0.5: 1, 1.5: 1 + s, 2.5: 1 + s + q / 3}[kernel.nu] * ca.exp(-s), 1.0


@_values.register
def _(kernel: RationalQuadratic, z: Any, places: FloatArray) -> tuple[Any, Any]:
    ca = casadi()
    return ca.exp(-kernel.alpha * ca.log1p(_squares(kernel, z, places))), 1.0


@_values.register
def _(kernel: Linear, z: Any, places: FloatArray) -> tuple[Any, Any]:
    ca, scales = casadi(), np.broadcast_to(np.asarray(kernel.length_scale, dtype=float), places.shape[1])
    return ca.mtimes(places / scales**2, z), ca.sumsqr(z / ca.DM(scales))


@_values.register
def _(kernel: Constant, z: Any, places: FloatArray) -> tuple[Any, Any]:  # noqa: ARG001
    return casadi().MX(np.full(len(places), kernel.value)), kernel.value


@_values.register(Sum)
@_values.register(Product)
@_values.register(Power)
def _(kernel: Any, z: Any, places: FloatArray) -> tuple[Any, Any]:
    cross, prior = zip(*(_values(part, z, places) for part in kernel.kernels), strict=True)
    return kernel._f(*cross), kernel._f(*prior)


def _callback(posterior: Posterior, name: str, wanted: tuple[str, ...]) -> Any:
    """A function of CasADi that calls the model; IPOPT needs ``hessian_approximation="limited-memory"`` with it."""
    ca, (_, d) = casadi(), posterior.smoother.places.shape
    n_y = posterior.smoother.targets.shape[1]

    class Function(ca.Callback):  # type: ignore[misc, name-defined]
        """``values`` at x, (n_y, columns) each; further arguments, which are outputs, are not needed."""

        def __init__(self, own_name: str, names: tuple[Sequence[str], Sequence[str]], options: Any) -> None:
            ca.Callback.__init__(self)
            self.names = names
            self.construct(own_name, options)

        def get_n_in(self) -> int:
            return len(self.names[0])

        def get_n_out(self) -> int:
            return len(self.names[1])

        def get_name_in(self, i: int) -> str:
            return self.names[0][i]

        def get_name_out(self, i: int) -> str:
            return self.names[1][i]

        def get_sparsity_in(self, i: int) -> Any:
            return ca.Sparsity.dense(d if i == 0 else n_y, 1)

        def get_sparsity_out(self, i: int) -> Any:  # noqa: ARG002
            return ca.Sparsity.dense(n_y, self.columns)

        def eval(self, arguments: Any) -> list[Any]:
            x = arrays.like(arguments[0].full().reshape(1, d), posterior.smoother.places)
            found = self.values(x)
            return [ca.DM(_matrix(found[output]).reshape(n_y, self.columns)) for output in wanted]

    class Jacobian(Function):
        """Derivatives of all outputs."""

        columns = d

        def values(self, x: Any) -> dict[str, Any]:
            return vars(posterior.gradient(x))

    class Model(Function):
        """Mean, V and P2."""

        columns = 1

        def values(self, x: Any) -> dict[str, Any]:
            mean, parts = posterior.mean_and_uncertainty(x)
            return {"mean": mean, "noise": parts.estimate, "model": parts.model}

        def has_jacobian(self) -> bool:
            return True

        def get_jacobian(self, own_name: str, inames: list[str], onames: list[str], options: Any) -> Any:
            self.derivative = Jacobian(own_name, (inames, onames), options)  # kept alive
            return self.derivative

    return Model(name, (["x"], wanted), {})
