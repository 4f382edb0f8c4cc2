"""Proofs of single problems: Huber with its scale, Firth, largest errors, margins, perceptrons."""
