"""Kernels k(x, z) of support vector machines, and blocks of their matrices by matrix products."""

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
