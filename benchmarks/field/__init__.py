"""Every class that scikit-learn has too, on all data sets of a folder, with default parameters."""
