"""Attacks on the checker of certificates: honest fits, forgeries by grammar, mutated provers.

``python -m tests.attack --help`` runs as many as one likes and prints the counts.
"""
