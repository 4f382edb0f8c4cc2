"""Every estimator that scikit-learn has too, on every data set of a folder, with default parameters."""
