"""Dynamics: a dynamic system whose transition function is learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray, RandomState
from ..noise import as_noise
from ..noise.base import as_generator
from ..regressor import WienerKernelRegressor
from .parts import as_parts
from .rollout import Policy, Rollout, simulate, warn_of_unexplored
from .trajectories import check_lags, check_trajectories, fitted, split_trajectories
from .tube import Tube

__all__ = ["Dynamics"]


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
    state_names : sequence of str, default=None

    Attributes
    ----------
    n_states, n_inputs : int

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
        state_names: Sequence[str] | None = None,
    ) -> None:
        if learns not in ("state", "increment"):
            raise ValueError(f"learns must be 'state' or 'increment', got {learns!r}")
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
        names = [f"x{i + 1}" for i in range(self.n_states)] if state_names is None else list(state_names)
        if len(names) != self.n_states:
            raise ValueError(f"state_names must have {self.n_states} names, got {len(names)}")
        self.state_names = tuple(names)
        self._callbacks: list[Any] = []

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
    ) -> Dynamics:
        """Fit the one-step map to trajectories.

        Parameters
        ----------
        X : array-like of shape (T,) or (T, n_x), or list of them
            States, or outputs of a system with lags (NARX).
        U : array-like of shape (T,) or (T, n_u), or (T - 1, n_u), or list of them, default=None
            Input u_k leads from x_k to x_{k+1}.
        lags : int, pair of int, or list of them, default=1
        model : WienerKernelRegressor or list of them, default=None
            Not fitted; each state gets a copy. From several lags or models, those with the smallest simulation error
            over ``horizon`` steps are taken: they are fitted to the first two thirds of the data and simulated on the
            rest.
        learns, process_noise, state_names : optional
            As of the class.
        horizon : int, default=10

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
        states, inputs = check_trajectories(X, U)
        options = {"learns": learns, "process_noise": process_noise, "state_names": state_names}
        all_lags = [check_lags(value) for value in lags] if isinstance(lags, list) else [check_lags(lags)]
        models = list(model) if isinstance(model, list | tuple) else [model]
        models = [WienerKernelRegressor() if one is None else one for one in models]
        pairs = [(lag, one) for lag in all_lags for one in models]
        if len(pairs) == 1:
            return cls(fitted(states, inputs, *pairs[0], learns), lags=pairs[0][0], **options)
        early, late = split_trajectories(states, inputs, max(max(lag) for lag in all_lags) + horizon)
        errors = []
        for lag, one in pairs:
            candidate = cls(fitted(*early, lag, one, learns), lags=lag, **options)
            errors.append(candidate.simulation_error(*late, horizon=horizon))
        best = pairs[int(np.nanargmin(errors))]
        return cls(fitted(states, inputs, *best, learns), lags=best[0], **options)

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
        states, inputs = check_trajectories(X, U)
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
        values, steps = self._inputs(inputs, steps, policy=False)
        history = self._history(x0)[0]
        p, q = self.lags
        states = [history[0]]
        for k in range(steps):
            z = np.concatenate([history.ravel(), values[k : k + q][::-1].ravel()])
            state = self._mean(z[None])[0] if np.all(np.isfinite(z)) else np.full(self.n_states, np.nan)
            states.append(state)
            history = np.concatenate([state[None], history[: p - 1]])
        return np.array(states)

    def _mean(self, Z: FloatArray) -> FloatArray:
        """Mean of the next states for rows z, (m, n_x)."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.concatenate([self._part_mean(part, Z) for part in self.parts], axis=1)
        return mean + Z[:, : self.n_states] if self.learns == "increment" else mean

    @staticmethod
    def _part_mean(part: Any, Z: FloatArray) -> FloatArray:
        if part.transform is None:
            return np.asarray(part.mean(Z))
        return np.asarray(part.model.predict(Z)).reshape(len(Z), -1)

    def value_and_jacobian(self, z: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean of the next state and its derivative, in the shapes of l4acados' ``ResidualModel``.

        Parameters
        ----------
        z : array-like of shape (m, d)
            Rows (x_k, u_k), with lags as of the class.

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
            As of :meth:`WienerKernelRegressor.sample_paths`.
        verbose : bool, default=False
            Show the progress of long simulations on stderr.
        random_state : int, numpy Generator or RandomState, or None

        Returns
        -------
        Rollout
        """
        if n_paths is True or int(n_paths) != n_paths or n_paths < 1:
            raise ValueError(f"n_paths must be a positive integer, got {n_paths!r}")
        if of not in ("estimate", "function"):
            raise ValueError(f"of must be 'estimate' or 'function', got {of!r}")
        generator = as_generator(random_state)
        values, steps = self._inputs(inputs, steps, policy=True)
        random_start = _is_law(x0)
        found = None if random_start else self._history(x0)

        def start(n: int, generator: Any) -> FloatArray:
            if found is not None:
                return np.broadcast_to(found, (n, *found.shape[1:]))
            return self._drawn(x0, n, generator)

        result = simulate(
            self.parts,
            start,
            values,
            steps,
            int(n_paths),
            lags=self.lags,
            increment=self.learns == "increment",
            random_start=random_start,
            causes=causes,
            names=self.state_names,
            of=of,
            features=features,
            verbose=verbose,
            generator=generator,
        )

        def inputs_of(k: int) -> FloatArray:
            q = self.lags[1]
            if callable(values):
                return np.broadcast_to(
                    np.asarray(values(k, result.states[:, k]), dtype=float), (n_paths, self.n_inputs)
                )
            return np.broadcast_to(values[k : k + q][::-1].ravel(), (n_paths, self.n_inputs * q))

        if of == "function":
            warn_of_unexplored(self.parts, result, inputs_of, self.lags[0])
        return result

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

        Parameters
        ----------
        x0, inputs, steps, feedback, check, random_state : see :class:`Tube`

        Returns
        -------
        Tube
        """
        return Tube(self, x0, inputs, steps, feedback=feedback, check=check, random_state=random_state)

    def to_casadi(self, name: str = "dynamics", callback: bool | str = "auto") -> Any:
        """The mean of the next state as a function of CasADi, for optimal control; needs the extra ``casadi``.

        Parameters
        ----------
        name : str, default="dynamics"
        callback : {"auto", True, False}, default="auto"
            As of :meth:`WienerKernelRegressor.to_casadi`.

        Returns
        -------
        casadi.Function
            (x, u) -> x_next, with stacked past states and inputs, latest first, for a system with lags.
        """
        from .casadi_export import dynamics_to_casadi

        return dynamics_to_casadi(self, name, callback)

    def _history(self, x0: Any) -> FloatArray:
        """Initial states, latest first, (1, p, n_x)."""
        p, n_x = self.lags[0], self.n_states
        try:
            x = np.asarray(x0, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(
                f"x0 must be numbers, a law, or a list of laws and numbers, got {x0!r}"
            ) from None
        if x.shape == (p, n_x):
            x = x[::-1]
        elif (p == 1 and x.shape in ((n_x,), (1, n_x))) or (p == 1 and n_x == 1 and x.ndim == 0):
            x = x.reshape(1, n_x)
        elif n_x == 1 and x.shape == (p,):
            x = x[::-1, None]
        else:
            wanted = f"({n_x},)" if p == 1 else f"({p}, {n_x}), in the order of time"
            raise ValueError(f"x0 must have shape {wanted}, got {x.shape}")
        if not np.all(np.isfinite(x)):
            raise ValueError(f"x0 must be finite, got {x0!r}")
        return np.array(x)[None]

    def _drawn(self, x0: Any, n: int, generator: Any) -> FloatArray:
        """Draws of a random initial state, (n, 1, n_x)."""
        if self.lags[0] > 1:
            raise ValueError("a random x0 needs a system without lags")
        if isinstance(x0, list | tuple):
            if len(x0) != self.n_states:
                raise ValueError(
                    f"x0 must have one law or number for each of {self.n_states} states, got {len(x0)}"
                )
            columns = [
                np.full(n, law)
                if np.isscalar(law) and not isinstance(law, str)
                else as_noise(law).rvs(n, random_state=generator)
                for law in x0
            ]
            draws = np.stack(columns, axis=1)
        else:
            draws = np.asarray(
                (as_noise(x0) if isinstance(x0, str) else x0).rvs(size=n, random_state=generator), dtype=float
            )
        if draws.size != n * self.n_states:
            raise ValueError(
                f"x0 must be a law of {self.n_states} states, its draws have shape {draws.shape[1:]}"
            )
        return draws.reshape(n, 1, self.n_states)

    def _inputs(self, inputs: Any, steps: int | None, policy: bool) -> tuple[Any, int]:
        """Inputs (steps + q - 1, n_u) or a policy, and the number of steps; checked."""
        q, n_u = self.lags[1], self.n_inputs
        if steps is not None and (steps is True or int(steps) != steps or steps < 1):
            raise ValueError(f"steps must be a positive integer, got {steps!r}")
        if callable(inputs):
            if not policy or q > 1:
                raise ValueError(
                    "a policy needs a system without input lags" if policy else "inputs must be an array here"
                )
            if steps is None:
                raise ValueError("steps is needed with a policy")
            return self._checked_policy(inputs), int(steps)
        if inputs is None or np.size(inputs) == 0:
            if n_u:
                raise ValueError(
                    f"the system has {n_u} inputs: give an array of shape (steps, {n_u}) or a policy"
                )
            if steps is None:
                raise ValueError("steps is needed without inputs")
            return np.empty((int(steps) + q - 1, 0)), int(steps)
        values = np.asarray(inputs, dtype=float)
        values = values[:, None] if values.ndim == 1 and n_u == 1 else values
        known = values.shape[0] - q + 1 if values.ndim else 0
        if values.ndim != 2 or values.shape[1] != n_u or known < 1 or (steps is not None and steps != known):
            wanted = "steps" if steps is None else f"{int(steps) + q - 1}"
            past = f", of which the first {q - 1} are past inputs" * (q > 1)
            raise ValueError(f"inputs must have shape ({wanted}, {n_u}){past}, got {np.shape(inputs)}")
        if not np.all(np.isfinite(values)):
            raise ValueError("inputs must be finite")
        return values, known

    def _checked_policy(self, policy: Policy) -> Policy:
        def checked(k: int, x: FloatArray) -> FloatArray:
            u = np.asarray(policy(k, x), dtype=float)
            if u.shape not in ((len(x), self.n_inputs), (self.n_inputs,)) and not (
                u.ndim == 1 and self.n_inputs == 1 and len(u) == len(x)
            ):
                raise ValueError(
                    f"the policy must return inputs of shape ({len(x)}, {self.n_inputs}) or ({self.n_inputs},), got {u.shape}"
                )
            return u[:, None] if u.ndim == 1 and len(u) == len(x) and self.n_inputs == 1 else u

        return checked


def _is_law(x0: Any) -> bool:
    several = isinstance(x0, list | tuple) and any(hasattr(law, "rvs") or isinstance(law, str) for law in x0)
    return hasattr(x0, "rvs") or isinstance(x0, str) or several
