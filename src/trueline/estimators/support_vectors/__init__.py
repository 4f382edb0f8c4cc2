"""Kernel support vector machines."""

from trueline.estimators.support_vectors.one_class import OneClassSVM
from trueline.estimators.support_vectors.svc import SVC, NuSVC
from trueline.estimators.support_vectors.svr import SVR, NuSVR

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"]
