"""Proofs of single problems: Huber with its scale, largest errors, margins, perceptrons.

In: the problem and the answer of its own solver. Out: a certificate whose kind is this problem's.
"""
