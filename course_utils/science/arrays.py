"""One code path for numpy arrays and torch tensors: which library made an array. Imports no torch."""

import sys
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

Array = TypeVar("Array")  # a numpy array or a torch tensor; what comes back is of the same kind


def namespace(**arrays: Any) -> ModuleType:
    """The library, numpy or torch, whose floating-point arrays all of these are, by name.

    Both libraries know asarray, where, exp, amax, concatenate and @, so one formula serves both.
    Raises ValueError for lists and other things, for integers, and for a mixture of the two libraries.
    """
    torch = sys.modules.get("torch")  # whoever has a tensor has imported torch
    libraries = set()
    for name, array in arrays.items():
        if isinstance(array, np.ndarray):
            libraries.add(np)
        elif torch is not None and isinstance(array, torch.Tensor):
            libraries.add(torch)
        else:
            raise ValueError(f"{name} is of type {type(array).__name__}: give a numpy array or a torch tensor")
        if "float" not in str(array.dtype):
            raise ValueError(f"{name} holds {array.dtype}: give floating-point numbers")
    if len(libraries) > 1:
        raise ValueError(f"{' and '.join(arrays)} mix numpy arrays and torch tensors: give all of one kind")
    return libraries.pop()


def cast(array: Array, dtype: Any) -> Array:
    """The array in another dtype of its own library; a tensor stays part of its gradient's graph."""
    return array.astype(dtype) if isinstance(array, np.ndarray) else array.to(dtype)
