"""Feature maps phi(x): what happens to data before a linear model sees them.

Every map is a scikit-learn transformer that names its columns. Names live in their own files, so
that importing one map imports no other.
"""
