"""Kernels k(x, z) of support vector machines, and blocks of their matrices by matrix products.

In: rows and the parameters of a kernel. Out: blocks of its matrix, with their rounding.
"""

from trueline.kernels.function import KernelFunction
from trueline.kernels.scores import kernel_scores
from trueline.kernels.source import DenseSource, KernelSource, MatrixSource, SparseSource

__all__ = [
    "DenseSource",
    "KernelFunction",
    "KernelSource",
    "MatrixSource",
    "SparseSource",
    "kernel_scores",
]
