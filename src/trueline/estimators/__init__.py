"""Estimators: scikit-learn classes that state a problem and keep its solution."""

from trueline.estimators.linear_regression import LinearRegression
from trueline.estimators.linear_regressor import LinearRegressor
from trueline.estimators.polynomial import PolynomialRegression
from trueline.estimators.ridge import Ridge
from trueline.estimators.ridge_cv import RidgeCV
from trueline.estimators.stepwise import StepwiseRegression

__all__ = [
    "LinearRegression",
    "LinearRegressor",
    "PolynomialRegression",
    "Ridge",
    "RidgeCV",
    "StepwiseRegression",
]
