"""GPyTorch, exact, with PyTorch's L-BFGS."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.bayes.objective import BayesData, Theta
from benchmarks.contestants.base import Contestant, Tuned


def process(data: BayesData, tol: float) -> Theta:
    """Exact inference by Cholesky in double precision."""
    import gpytorch
    import torch

    torch.set_default_dtype(torch.float64)
    X, y = torch.from_numpy(data.X), torch.from_numpy(data.y)
    d = data.X.shape[1]
    likelihood = gpytorch.likelihoods.GaussianLikelihood()

    class Exact(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(X, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            base = gpytorch.kernels.RBFKernel(ard_num_dims=d if data.by_column else None)
            self.covar_module = gpytorch.kernels.ScaleKernel(base)

        def forward(self, x):  # type: ignore[no-untyped-def]
            mean, covariance = self.mean_module(x), self.covar_module(x)
            return gpytorch.distributions.MultivariateNormal(mean, covariance)

    model = Exact()
    model.covar_module.outputscale = 1.0
    model.covar_module.base_kernel.lengthscale = 1.0
    likelihood.noise = 1.0
    model.train()
    likelihood.train()
    value = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimiser = torch.optim.LBFGS(
        model.parameters(),
        lr=1.0,
        max_iter=200,
        tolerance_grad=tol,
        tolerance_change=tol,
        line_search_fn="strong_wolfe",
    )

    def closure():  # type: ignore[no-untyped-def]
        optimiser.zero_grad()
        loss = -value(model(X), y)
        loss.backward()
        return loss

    exact = (
        gpytorch.settings.fast_computations(False, False, False),
        gpytorch.settings.cholesky_max_tries(6),
        gpytorch.settings.max_cholesky_size(10**9),
    )
    with exact[0], exact[1], exact[2]:
        optimiser.step(closure)
    scale = float(model.covar_module.outputscale)
    lengths = model.covar_module.base_kernel.lengthscale.detach().numpy().ravel()
    theta = [math.log(scale), *np.log(lengths), math.log(float(likelihood.noise))]
    return Theta(np.array(theta))


CONTESTANTS = (
    Contestant(
        "GPyTorch",
        tuned={"process": Tuned(process, (1e-4, 1e-6, 1e-8))},
        package="gpytorch",
        is_guest=True,
    ),
)
