"""Learned dynamics x_{k+1} = f(x_k, u_k) + M: rollouts with one function per path, tubes, export to control software."""

from .causes import Causes
from .dynamics import Dynamics
from .rollout import Rollout
from .state_law import StateDistribution
from .trajectories import seasonal_inputs
from .tube import Tube

__all__ = ["Causes", "Dynamics", "Rollout", "StateDistribution", "Tube", "seasonal_inputs"]
