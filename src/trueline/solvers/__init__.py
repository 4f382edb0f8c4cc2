"""Solvers: ways to the minimum, one per file, and the loop that the iterative ones share.

In: a problem, options and a monitor. Out: a Solution with its proof. ``registry`` lists the
solvers, ``base`` says what one is, what its steps cost, and holds the loop; the folders are named
by method.

The rest of the package asks for a solver by ``registry``. What it needs beside that is named here:
problems with a term of their own, least squares from moments and its proofs, and the dual programs
of kernel machines. Nothing else of the folders is imported from outside.
"""

from trueline.solvers.first_order.proximal_gradient import ProximalGradient
from trueline.solvers.iterative import best_constant
from trueline.solvers.least_squares.active_set import solve_nonnegative
from trueline.solvers.least_squares.cholesky import PendingProof, solve_from_moments
from trueline.solvers.least_squares.normal_equations import (
    MOST_DENSE,
    curvature_matrix,
    evidence_at,
    evidence_from_moments,
    evidence_from_rows,
    factor_normal_equations,
    orthogonal_complement,
    project,
    row_space,
)
from trueline.solvers.least_squares.orthogonal import rank_tolerance
from trueline.solvers.least_squares.qr import solve_by_rows
from trueline.solvers.least_squares.spectrum import LiftedKernel, Spectrum
from trueline.solvers.newton.concomitant import concomitant_cost, solve_concomitant
from trueline.solvers.newton.firth import solve_firth
from trueline.solvers.newton.non_convex import solve_locally
from trueline.solvers.newton.solver import constant_model
from trueline.solvers.smo.engine import WHOLE, is_whole, solve_dual, whole_matrix
from trueline.solvers.smo.inner import largest_score
from trueline.solvers.smo.program import DualProgram, DualSolution, by_row, filled, levels
from trueline.solvers.smo.textbook import solve_textbook
from trueline.solvers.transformed import IndependentColumns, proof_at

__all__ = [
    "MOST_DENSE",
    "WHOLE",
    "DualProgram",
    "DualSolution",
    "IndependentColumns",
    "PendingProof",
    "ProximalGradient",
    "LiftedKernel",
    "Spectrum",
    "best_constant",
    "by_row",
    "constant_model",
    "curvature_matrix",
    "evidence_at",
    "evidence_from_moments",
    "evidence_from_rows",
    "factor_normal_equations",
    "filled",
    "is_whole",
    "largest_score",
    "levels",
    "orthogonal_complement",
    "project",
    "proof_at",
    "rank_tolerance",
    "row_space",
    "solve_by_rows",
    "concomitant_cost",
    "solve_concomitant",
    "solve_dual",
    "solve_firth",
    "solve_from_moments",
    "solve_locally",
    "solve_nonnegative",
    "solve_textbook",
    "whole_matrix",
]
