"""Dynamics: a dynamic system whose transition function is learned."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray, RandomState
from ..noise.base import as_generator
from ..regressor import WienerKernelRegressor
from ..text import check_choice
from ..transform import Transform
from .checks import check_count, check_inputs, check_names, check_start, drawn_start, is_law
from .parts import as_parts
from .rollout import Rollout
from .simulation import Policy, simulate
from .trajectories import check_lags, check_trajectories, fitted, split_trajectories, transformed
from .tube import Tube

__all__ = ["Dynamics"]

RECENT, RECENT_AT_LEAST = 3, 20
"""States before a forecast that are kept for figures: multiples of the horizon, and at least."""


class Dynamics:
    """A dynamic system x_{k+1} = f(x_k, u_k) + M whose function f is learned.

    Parameters
    ----------
    model : WienerKernelRegressor, or list of them
        Fitted to rows (x_k, u_k) and the next states: one model with an output for each state, or one model for each
        state. With lags, rows are (x_k, x_{k-1}, ..., u_k, u_{k-1}, ...).
    learns : {"state", "increment"}, default="state"
        Whether the outputs are x_{k+1} or x_{k+1} - x_k.
    process_noise : None, False, law or list of laws, default=None
        Law of M: that of the models' noise (the states are disturbed), none (they were measured with errors only), or
        another one for each state.
    lags : int or pair of int, default=1
        How many past states and inputs f depends on, this one included; one number holds for both.
    lags_transformed : bool, default=False
        Whether the models were fitted to T(x_k), with their own transforms T of the states, instead of x_k.
    state_names, input_names : sequence of str, default=None

    Attributes
    ----------
    n_states, n_inputs : int
    models : list of WienerKernelRegressor
    origin : tuple of ndarray or None
        The last states, (m, n_x) with m >= p, of the trajectories that it was fitted to, and the last q inputs,
        followed by those of the forecast as far as they are known, (q + ..., n_u).
    horizon : int
        Number of steps of a forecast.

    Notes
    -----
    The inputs of a model that was fitted to a trajectory depend on the noise in it. The variances are then approximate;
    in simulations, squared errors were 1.04 to 1.05 times as large as predicted.

    Examples
    --------
    >>> from wienerkernel import Dynamics, RBF, WienerKernelRegressor
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.uniform(-2, 2, (40, 3))   # two states and an input
    >>> Y = np.column_stack([0.9 * Z[:, 0] + 0.2 * Z[:, 1], 0.8 * Z[:, 1] + 0.3 * Z[:, 2]]) + rng.gamma(0.5, 0.1, (40, 2))
    >>> model = WienerKernelRegressor(4.0 * RBF(3.0), noise="gamma(0.5, scale=0.1)", tuning=None).fit(Z, Y)
    >>> dynamics = Dynamics(model)
    >>> dynamics.n_states, dynamics.n_inputs
    (2, 1)
    >>> r = dynamics.rollout([1.0, 0.0], np.zeros((5, 1)), n_paths=50, random_state=0)
    >>> r.states.shape
    (50, 6, 2)
    """

    def __init__(
        self,
        model: Any,
        *,
        learns: str = "state",
        process_noise: Any = None,
        lags: int | tuple[int, int] = 1,
        lags_transformed: bool = False,
        state_names: Sequence[str] | None = None,
        input_names: Sequence[str] | None = None,
    ) -> None:
        check_choice("learns", learns, ("state", "increment"))
        self.parts = as_parts(model, process_noise)
        self.learns, self.lags = learns, check_lags(lags)
        self.n_states = self.parts[-1].states.stop
        d = self.parts[0].model.n_features_in_
        rest = d - self.n_states * self.lags[0]
        if rest < 0 or rest % self.lags[1]:
            raise ValueError(
                f"a model of {self.n_states} states with lags {self.lags} has {self.n_states * self.lags[0]} inputs and a "
                f"multiple of {self.lags[1]}, but this one was fitted to {d}"
            )
        self.n_inputs = rest // self.lags[1]
        self.state_names = check_names("state_names", state_names, self.n_states, "x")
        self.input_names = check_names("input_names", input_names, self.n_inputs, "u")
        self.lags_transformed = bool(lags_transformed)
        if lags_transformed and learns == "increment":
            raise ValueError(
                "lags_transformed needs learns='state': increments are not on the scale of the states"
            )
        self.origin: tuple[FloatArray, FloatArray] | None = None
        self.horizon = 10
        self._callbacks: list[Any] = []

    @property
    def models(self) -> list[WienerKernelRegressor]:
        """The fitted models."""
        return [part.model for part in self.parts]

    @property
    def transforms(self) -> tuple[Transform | None, ...]:
        """The scale on which each state is predicted."""
        return tuple(part.transform for part in self.parts for _ in range(part.n_states))

    @property
    def lag_transforms(self) -> tuple[Transform | None, ...]:
        """How past states are transformed before the models see them, for each state."""
        return self.transforms if self.lags_transformed else (None,) * self.n_states

    def __repr__(self) -> str:
        return f"<Dynamics: {self.n_states} states, {self.n_inputs} inputs, lags {self.lags}, learns the {self.learns}>"

    @classmethod
    def from_trajectories(
        cls,
        X: Any,
        U: Any = None,
        *,
        lags: Any = 1,
        model: Any = None,
        learns: str = "state",
        process_noise: Any = None,
        horizon: int = 10,
        state_names: Sequence[str] | None = None,
        input_names: Sequence[str] | None = None,
    ) -> Dynamics:
        """Fit the one-step map to trajectories.

        Parameters
        ----------
        X : array-like of shape (T,) or (T, n_x), or list of them
            States, or outputs of a system with lags (NARX).
        U : array-like of shape (T,) or (T, n_u), or (T - 1, n_u), or list of them, default=None
            Input u_k leads from x_k to x_{k+1}. Rows after the end of the last trajectory are inputs of the forecast,
            such as :func:`~wienerkernel.seasonal_inputs`.
        lags : int, pair of int, or list of them, default=1
        model : WienerKernelRegressor or list of them, default=None
            Not fitted; each state gets a copy. From several lags or models, those with the smallest simulation error
            over ``horizon`` steps are taken: they are fitted to the first two thirds of the data and simulated on the
            rest. If a model transforms the next state, as ``transform="log"`` and ``noise="auto"`` do, past states are
            transformed in the same way.
        learns, process_noise, state_names, input_names : optional
            As for the class.
        horizon : int, default=10
            Also that of :meth:`forecast`.

        Returns
        -------
        Dynamics

        Examples
        --------
        >>> from wienerkernel import RBF
        >>> x = np.sin(0.5 * np.arange(40))
        >>> model = WienerKernelRegressor(RBF(2.0), noise="norm(0, 0.01)", tuning=None)
        >>> dynamics = Dynamics.from_trajectories(x, lags=[1, 2], model=model)
        >>> dynamics.lags[0]
        2
        """
        states, inputs, ahead = check_trajectories(X, U)
        options = {
            "learns": learns,
            "process_noise": process_noise,
            "state_names": state_names,
            "input_names": input_names,
        }
        all_lags = [check_lags(value) for value in lags] if isinstance(lags, list) else [check_lags(lags)]
        models = list(model) if isinstance(model, list | tuple) else [model]
        models = [WienerKernelRegressor() if one is None else one for one in models]
        pairs = [(lag, one) for lag in all_lags for one in models]
        horizon = check_count("horizon", horizon)
        if not pairs:
            raise ValueError("lags and model must not be empty lists")
        wrong = [one for one in models if not isinstance(one, WienerKernelRegressor)]
        if wrong:
            raise TypeError(
                f"model must be a WienerKernelRegressor or a list of them, got {type(wrong[0]).__name__}"
            )

        def system(data: Any, lag: tuple[int, int], one: Any) -> Dynamics:
            models, alike = fitted(data[0], data[1], lag, one, learns)
            return cls(models, lags=lag, lags_transformed=alike, **options)

        pair = pairs[0]
        if len(pairs) > 1:
            early, late = split_trajectories(states, inputs, max(max(lag) for lag in all_lags) + horizon)
            errors = [system(early, *pair).simulation_error(*late, horizon=horizon) for pair in pairs]
            pair = pairs[int(np.nanargmin(errors))]
        found, (p, q) = system((states, inputs), *pair), pair[0]
        x, u = states[-1], inputs[-1]
        u = u if len(u) == len(x) else np.concatenate([u, u[-1:]])
        kept = max(p, RECENT * horizon, RECENT_AT_LEAST)
        found.origin, found.horizon = (x[-kept:].copy(), np.concatenate([u[-q:], ahead])), horizon
        return found

    def simulation_error(self, X: Any, U: Any = None, *, horizon: int = 10) -> float:
        """Root mean squared error of free runs of the mean, over all states in units of their standard deviation.

        Parameters
        ----------
        X, U : as in :meth:`from_trajectories`
        horizon : int, default=10
            Steps of each run; runs start at every ``horizon``-th sample.

        Returns
        -------
        float
            Infinite if a run diverges.
        """
        states, inputs, _ = check_trajectories(X, U)
        horizon = check_count("horizon", horizon)
        spread = np.concatenate(states).std(axis=0)
        spread, squares = np.where(spread > 0, spread, 1.0), []
        first = max(self.lags) - 1
        for x, u in zip(states, inputs, strict=True):
            for start in range(first, len(x) - 1, horizon):
                steps = min(horizon, len(x) - 1 - start)
                window = u[start - self.lags[1] + 1 : start + steps]
                run = self.simulate_mean(x[start - self.lags[0] + 1 : start + 1], window, steps)
                squares.append(((run[1:] - x[start + 1 : start + 1 + steps]) / spread) ** 2)
        if not squares:
            raise ValueError(f"trajectories must have more than {first + 1} samples for lags {self.lags}")
        with np.errstate(over="ignore", invalid="ignore"):
            error = float(np.sqrt(np.mean(np.concatenate(squares))))
        return error if np.isfinite(error) else float("inf")

    def simulate_mean(self, x0: Any, inputs: Any = None, steps: int | None = None) -> FloatArray:
        """Free run of the mean: x_{k+1} is the mean prediction at x_k.

        Parameters
        ----------
        x0 : array-like of shape (n_x,), or (p, n_x) with lags, in the order of time
        inputs : array-like of shape (steps + q - 1, n_u), default=None
        steps : int, default=None
            Needed without inputs.

        Returns
        -------
        ndarray of shape (steps + 1, n_x)
        """
        values, steps = check_inputs(inputs, steps, self.n_inputs, self.lags[1], policy=False)
        history = check_start(x0, self.n_states, self.lags[0])[0]
        p, q = self.lags
        states = [history[0]]
        history = transformed(history, self.lag_transforms)
        for k in range(steps):
            z = np.concatenate([history.ravel(), values[k : k + q][::-1].ravel()])
            state = self._mean(z[None])[0] if np.all(np.isfinite(z)) else np.full(self.n_states, np.nan)
            states.append(state)
            history = np.concatenate([transformed(state[None], self.lag_transforms), history[: p - 1]])
        return np.array(states)

    def _mean(self, Z: FloatArray) -> FloatArray:
        """Mean of the next states for rows z, (m, n_x)."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.concatenate([part.mean(Z) for part in self.parts], axis=1)
        return mean + Z[:, : self.n_states] if self.learns == "increment" else mean

    def value_and_jacobian(self, z: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean of the next state and its derivative, in the shapes of l4acados' ``ResidualModel``.

        Parameters
        ----------
        z : array-like of shape (m, d)
            Rows (x_k, u_k), with lags as for the class.

        Returns
        -------
        value : ndarray of shape (m, n_x)
        jacobian : ndarray of shape (n_x, m, d)
        """
        rows = np.atleast_2d(np.asarray(z, dtype=float))
        d = self.parts[0].model.n_features_in_
        if rows.shape[1] != d:
            raise ValueError(f"z must have {d} columns, got shape {np.shape(z)}")
        self._refuse_transform("value_and_jacobian")
        slopes = np.concatenate([part.gradient(rows) for part in self.parts], axis=1)
        if self.learns == "increment":
            slopes[:, :, : self.n_states] += np.eye(self.n_states)
        return self._mean(rows), np.moveaxis(slopes, 1, 0)

    def _refuse_transform(self, what: str) -> None:
        if any(part.transform is not None for part in self.parts):
            raise ValueError(f"{what} needs a model without a transform; rollouts work with one")

    def rollout(
        self,
        x0: Any,
        inputs: ArrayLike | Policy | None = None,
        steps: int | None = None,
        n_paths: int = 1000,
        *,
        causes: bool = True,
        of: str = "function",
        features: Any = "auto",
        verbose: bool = False,
        random_state: RandomState = None,
    ) -> Rollout:
        """Simulate paths, each with one random function: the noise in the data and the prior function are drawn once.

        Parameters
        ----------
        x0 : array-like of shape (n_x,), law, or list of laws and numbers
            Initial state, or (p, n_x) initial states in the order of time for a system with lags. A law has ``rvs``, as
            those of ``scipy.stats`` do; a list has one law or number for each state.
        inputs : array-like of shape (steps + q - 1, n_u), or callable, default=None
            Inputs in the order of time; with q input lags the first q - 1 rows are past ones. A policy is called as
            ``policy(k, x)`` with states x of shape (m, n_x), and returns inputs of shape (m, n_u) or (n_u,).
        steps : int, default=None
            Needed unless inputs are given as an array.
        n_paths : int, default=1000
        causes : bool, default=True
            Whether to split the variances by cause, by 8 rollouts for each path (16 if x0 is a law).
        of : {"function", "estimate"}, default="function"
            Whether unexplored inputs count.
        features : "auto", None or int, default="auto"
            As for :meth:`WienerKernelRegressor.sample_paths`.
        verbose : bool, default=False
            Show the progress of long simulations on stderr.
        random_state : int, numpy Generator or RandomState, or None

        Returns
        -------
        Rollout
        """
        n_paths = check_count("n_paths", n_paths)
        check_choice("of", of, ("estimate", "function"))
        generator = as_generator(random_state)
        values, steps = check_inputs(inputs, steps, self.n_inputs, self.lags[1], policy=True)
        random_start = is_law(x0)
        found = None if random_start else check_start(x0, self.n_states, self.lags[0])
        if found is not None and not np.all(np.isfinite(transformed(found, self.lag_transforms))):
            raise ValueError(f"x0 must lie in the domain of the models' transforms, got {x0!r}")

        def start(n: int, generator: Any) -> FloatArray:
            if found is not None:
                return np.broadcast_to(found, (n, *found.shape[1:]))
            return drawn_start(x0, n, self.n_states, self.lags[0], generator)

        return simulate(
            self,
            start,
            values,
            steps,
            n_paths,
            random_start=random_start,
            causes=causes,
            of=of,
            features=features,
            verbose=verbose,
            generator=generator,
        )

    def forecast(self, steps: int | None = None, inputs: ArrayLike | None = None, **options: Any) -> Rollout:
        """Simulate from the end of the last trajectory that the system was fitted to.

        Parameters
        ----------
        steps : int, default=None
            By default ``horizon``.
        inputs : array-like of shape (steps, n_u), default=None
            The first acts from the last state of the trajectory on. By default those that were given to
            :meth:`from_trajectories`; the last known one is held.
        **options
            As for :meth:`rollout`.

        Returns
        -------
        Rollout

        Examples
        --------
        >>> x = np.sin(0.5 * np.arange(40)) + 0.1 * np.random.default_rng(0).standard_normal(40)
        >>> system = Dynamics.from_trajectories(x, lags=2, horizon=5)
        >>> system.forecast(n_paths=20, random_state=0).states.shape
        (20, 6, 1)
        """
        if self.origin is None:
            raise ValueError("a forecast needs a system made by from_trajectories; otherwise use rollout")
        states, known = self.origin
        if steps is None and inputs is None:
            steps = self.horizon
        if not self.n_inputs:
            return self.rollout(states[-self.lags[0] :], inputs, steps, **options)
        past = self.lags[1] - 1
        if inputs is None:
            needed = past + check_count("steps", steps)
            values = np.concatenate([known, np.tile(known[-1], (max(needed - len(known), 0), 1))])[:needed]
        else:
            given = check_inputs(inputs, steps, self.n_inputs, 1, policy=False)[0]
            values = np.concatenate([known[:past], given])
        return self.rollout(states[-self.lags[0] :], values, **options)

    def tube(
        self,
        x0: Any,
        inputs: Any = None,
        steps: int | None = None,
        *,
        feedback: ArrayLike | None = None,
        check: int = 200,
        random_state: RandomState = 0,
    ) -> Tube:
        """Linearize the rollout about the run of its mean; the law of the states is then exact and fast.

        One step is exact; for more the noise must be small enough for the linearization, which sampled paths check.

        Parameters
        ----------
        x0 : array-like of shape (n_x,)
        inputs : array-like of shape (steps, n_u), default=None
        steps : int, default=None
            Needed without inputs.
        feedback : array-like of shape (n_u, n_x) or (steps, n_u, n_x), default=None
            K in u_k = inputs_k + K (x_k - mean_k).
        check : int, default=200
            Number of sampled paths that the tube is compared with; 0 for none.
        random_state : int, numpy Generator or RandomState, or None, default=0
            Of these paths.

        Returns
        -------
        Tube
        """
        if self.lags != (1, 1):
            raise ValueError(
                f"a tube needs a system without lags, got lags {self.lags}; rollouts work with lags"
            )
        values, steps = check_inputs(inputs, steps, self.n_inputs, 1, policy=False)
        shape = steps, self.n_inputs, self.n_states
        gain = np.asarray(np.zeros(shape) if feedback is None else feedback, dtype=float)
        if gain.shape not in (shape, shape[1:]):
            raise ValueError(f"feedback must have shape {shape[1:]} or {shape}, got {gain.shape}")
        if not np.all(np.isfinite(gain)):
            raise ValueError("feedback must be finite")
        tube = Tube(self, self.simulate_mean(x0, values, steps), values, np.broadcast_to(gain, shape))
        if check:
            tube.compare(int(check), random_state)
        return tube

    def to_casadi(self, name: str = "dynamics", callback: bool | str = "auto") -> Any:
        """The mean of the next state as a function of CasADi, for optimal control; needs the extra ``casadi``.

        Parameters
        ----------
        name : str, default="dynamics"
        callback : {"auto", True, False}, default="auto"
            As for :meth:`WienerKernelRegressor.to_casadi`.

        Returns
        -------
        casadi.Function
            (x, u) -> x_next, with stacked past states and inputs, latest first, for a system with lags.
        """
        from .casadi_export import dynamics_to_casadi

        return dynamics_to_casadi(self, name, callback)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the system to a file for :meth:`load`: numbers and names, no code.

        Parameters
        ----------
        path : path-like
            Conventionally ending in ``.wk``. An existing file is replaced.

        Examples
        --------
        >>> import tempfile
        >>> x = np.sin(0.5 * np.arange(40)) + 0.1 * np.random.default_rng(0).standard_normal(40)
        >>> system = Dynamics.from_trajectories(x, lags=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     system.save(f"{folder}/system.wk")
        ...     Dynamics.load(f"{folder}/system.wk")
        <Dynamics: 1 states, 0 inputs, lags (2, 2), learns the state>
        """
        from ..io.store import save

        save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Dynamics:
        """Read a system that :meth:`save` has written; nothing is refitted.

        Parameters
        ----------
        path : path-like

        Returns
        -------
        Dynamics

        Raises
        ------
        FormatError
            A ValueError: the file is not a saved system, is damaged, or was written by another version of the format.
        """
        from ..io.store import load_system

        return load_system(path)
