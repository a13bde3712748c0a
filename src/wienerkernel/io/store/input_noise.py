"""Noise on the inputs as JSON and arrays."""

from __future__ import annotations

from ...posterior.input_noise import InputNoise, Linearization
from ...validation import check_size
from .archive import FormatError
from .nodes import Node, Reader, Writer, entries
from .noise import noise_from, noise_node

__all__ = ["input_noise_from", "input_noise_node"]

ARRAYS = ("directions", "slopes", "curvature")


def input_noise_node(linear: Linearization, writer: Writer) -> Node:
    """Describe noise on the inputs, and hand its arrays to the writer."""
    noise = linear.noise
    laws = [noise_node(law, writer, f"input_noise.{k}") for k, law in enumerate(noise.laws)]
    values = (noise.directions, linear.slopes, linear.curvature)
    nodes = {
        name: writer.array(f"input_noise.{name}", array) for name, array in zip(ARRAYS, values, strict=True)
    }
    return {"laws": laws, **nodes}


def input_noise_from(node: Node, n_samples: int, n_features: int, reader: Reader) -> Linearization:
    """The noise on the inputs that a node describes."""
    laws, *parts = entries(node, "laws", *ARRAYS)
    if not isinstance(laws, list) or not 1 <= len(laws) <= n_features:
        raise FormatError(f"input_noise must have 1 to {n_features} laws")
    shapes = ((len(laws), n_features), (n_samples, len(laws)), (n_samples,))
    directions, slopes, curvature = (
        reader.array(part, shape) for part, shape in zip(parts, shapes, strict=True)
    )
    for name, values in zip(ARRAYS, (directions, slopes, curvature), strict=True):
        check_size(f"{name} of the input noise", values)
    return Linearization(
        InputNoise(tuple(noise_from(law, reader) for law in laws), directions), slopes, curvature
    )
