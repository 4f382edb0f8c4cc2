r"""The maximum of the marginal likelihood: few rows first, then all of them.

An evaluation costs the cube of the number of rows. The way from a first guess to the neighbourhood
of the maximum is therefore gone on a few hundred rows drawn at random (L-BFGS-B, as in other
libraries), where an evaluation takes a millisecond, three times; then, from the end that is most
likely with more rows, on more, and at last on all rows, with Newton's steps from the average
information, of which a handful is enough. Few rows can miss what all rows show (a length scale
shorter than their spacing looks like noise): if they find hardly any signal, or leave much for
noise, or a rough guess leads other rows to a higher maximum, all rows go the whole way.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning

from trueline.gaussian_process.likelihood import Likelihood
from trueline.gaussian_process.structure import NOISE, Structure
from trueline.wording import counted

Array = NDArray[np.float64]

# From this many rows on it pays to start with few of them.
MANY = 400
_FEW = 250
# Every further stage has at most this many times the rows of the one before.
_GROWTH = 5.0
# Newton's steps end when the gain they promise is this small, relative to the value.
_GAIN = 1e-10
_STEPS = 30
# No parameter changes by more than this factor (in logarithms) in a step.
_LONGEST = 3.0
# Steps that are remembered to correct the information.
_REMEMBERED = 3
# Samples of few rows that the first stage tries, and how far apart in theta maxima are different.
_SAMPLES = 3
_APART = 0.3
# More noise than this share of the targets' square may be what few rows cannot tell from noise.
_NOISY = 0.1
# Guesses that the answer is compared with: on so many rows, lengths as shares of the spread.
_PROBED = 400
_SHARES = (2.0, 1.0, 0.5, 0.25)
# Likelihoods that agree to this part are at the same maximum.
_CLOSE = 1e-6
# A maximum is another one if it is higher by this part.
_HIGHER = 1e-9
# The slope of the likelihood, relative to it, that is left where a search has arrived.
_LEVEL = 1e-2
# The gain of log likelihood per row, over independent noise, below which nothing was learned.
_LEARNED = 1e-6
# Log likelihood per row above that of pure noise that counts as having found something.
_SIGNAL = 0.02


@dataclass(frozen=True)
class Found:
    """Where a search ended."""

    theta: Array
    value: float
    evaluations: int
    settled: bool
    notes: tuple[str, ...] = ()


def climb_function(
    minus: Callable[[Array], tuple[float, Array]], theta: Array, bounds: Array
) -> Found:
    """L-BFGS-B from theta, for a function that returns minus the likelihood and its gradient.

    Where there is no likelihood (the matrix is not positive definite, or numbers overflow) the
    search is given a high one: an infinite value would end it where it started, as converged.
    """
    last, nothing = math.inf, np.zeros(len(theta))

    def finite(at: Array) -> tuple[float, Array]:
        nonlocal last
        value, gradient = minus(at)
        if math.isfinite(value) and np.isfinite(gradient).all():
            last = float(value)
            return last, gradient
        return last + max(1.0, abs(last)), nothing

    first, gradient = minus(theta)
    if not (math.isfinite(first) and np.isfinite(gradient).all()):
        return Found(theta, -math.inf, 1, False)
    result = optimize.minimize(
        finite, theta, method="L-BFGS-B", jac=True, bounds=[tuple(pair) for pair in bounds]
    )
    end, value = np.asarray(result.x), -float(result.fun)
    settled = result.status == 0 and _is_level(end, value, -np.asarray(result.jac), bounds)
    return Found(end, value, int(result.nfev) + 1, settled)


def _is_level(theta: Array, value: float, gradient: Array, bounds: Array) -> bool:
    """Whether no parameter that may move promises more than a small part of the likelihood."""
    low, high = bounds[:, 0], bounds[:, 1]
    held = ((theta <= low) & (gradient < 0)) | ((theta >= high) & (gradient > 0))
    steepest = float(np.abs(np.where(held, 0.0, gradient)).max(initial=0.0))
    return steepest <= _LEVEL * max(1.0, abs(value))


def climb(likelihood: Likelihood, theta: Array, bounds: Array) -> Found:
    """The same for a likelihood by formula."""

    def minus(at: Array) -> tuple[float, Array]:
        value, gradient = likelihood.value_and_gradient(at)
        return -value, -gradient

    return climb_function(minus, theta, bounds)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # steps must be finite to count
def walk(likelihood: Likelihood, theta: Array, bounds: Array) -> Found:
    """Newton's steps with the average information, kept within the bounds.

    Parameters
    ----------
    likelihood : Likelihood
        Of one target.
    theta : array of shape (p,)
        Close to a maximum.
    bounds : array of shape (p, 2)
    """
    low, high = bounds[:, 0], bounds[:, 1]
    theta = np.clip(theta, low, high)
    before = likelihood.evaluations
    value = likelihood.value(theta)
    damping, settled = 0.0, False
    pairs: list[tuple[Array, Array]] = []
    gone, last = theta, np.empty(0)
    while likelihood.evaluations - before < _STEPS and value > -math.inf:
        gradient, information = likelihood.slope(with_information=True)
        if len(last):
            pairs = [*pairs[-_REMEMBERED + 1 :], (theta - gone, last - gradient)]
            for moved, curved in pairs:
                information = _corrected(information, moved, curved)
        free = ~(((theta <= low) & (gradient < 0)) | ((theta >= high) & (gradient > 0)))
        if not free.any():
            settled = True
            break
        step, gain = _newton(gradient, information, free, damping)
        if gain <= _GAIN * max(1.0, abs(value)):
            settled = True
            break
        if not np.isfinite(step).all():
            break
        trial, shrink = value, 1.0
        for _ in range(12):
            after = np.clip(theta + shrink * step, low, high)
            trial = likelihood.value(after)
            if trial >= value + 1e-4 * float(gradient @ (after - theta)):
                break
            shrink *= 0.3
        else:
            # No progress along the step: rounding, or a valley that needs shorter steps.
            break
        # Steps that had to be shortened were too long for the model; full ones earn trust.
        damping = 0.5 * damping if shrink == 1.0 else max(4 * damping, 0.1)
        # Where a parameter was cut or held, the others alone do not explain the change of slope.
        whole = bool(
            (np.abs(step[free]) < _LONGEST).all() and ((after > low) & (after < high))[free].all()
        )
        gone, last = (theta, gradient) if whole else (theta, np.empty(0))
        theta, value = after, trial
    return Found(theta, value, likelihood.evaluations - before, settled)


def _corrected(information: Array, moved: Array, curved: Array) -> Array:
    """The information that agrees with what the last steps showed (the formula of BFGS)."""
    along = information @ moved
    expected, seen = float(moved @ along), float(moved @ curved)
    if not (seen > 0.1 * expected > 0):
        return information
    return information - np.outer(along, along) / expected + np.outer(curved, curved) / seen


def _newton(
    gradient: Array, information: Array, free: NDArray[np.bool_], damping: float
) -> tuple[Array, float]:
    """A step of bounded length on the free parameters, and the gain it promises."""
    A, g = information[np.ix_(free, free)], gradient[free]
    scale = np.sqrt(np.maximum(np.diag(A), 1e-12 * max(float(np.diag(A).max()), 1e-300)))
    # In units in which the information has ones on its diagonal; directions without any
    # information would be followed for ever.
    unit = A / np.outer(scale, scale)
    values, vectors = np.linalg.eigh(unit)
    curvature = np.maximum(values, 1e-6) + damping
    along = vectors.T @ (g / scale)
    step = np.zeros_like(gradient)
    step[free] = (vectors @ (along / curvature)) / scale
    # Parameters of which the data say nothing hardly touch the others: each is cut by itself.
    return np.clip(step, -_LONGEST, _LONGEST), 0.5 * float((along**2 / curvature).sum())


def maximise(likelihood: Likelihood, starts: list[Array], bounds: Array) -> Found:
    """The best maximum that is reached from any of the starts.

    Parameters
    ----------
    likelihood : Likelihood
    starts : list of arrays of shape (p,)
    bounds : array of shape (p, 2)

    Returns
    -------
    best : Found
    """
    n, k = likelihood.Y.shape
    if n < MANY or k != 1:
        # Each start is followed to its end before they are compared: one more is never worse.
        ends = [_walked(likelihood, climb(likelihood, start, bounds), bounds) for start in starts]
        return max(ends, key=lambda found: found.value)
    generator = np.random.default_rng(0)
    promising, notes = _first_stage(likelihood, starts, bounds, generator)
    if not promising:
        return _best_climb(likelihood, starts, bounds)
    size = _few(n) * _GROWTH
    order = generator.permutation(n)
    while size < n:
        part = _part(likelihood, order[: int(size)])
        found = _finish(part, _best(part, promising), bounds)
        notes += (f"{int(size):,} rows: {counted(found.evaluations, 'evaluation')}",)
        promising = [found.theta]
        size *= _GROWTH
    before = likelihood.evaluations
    candidate = _best(likelihood, promising)
    confirmed = _confirmed(likelihood, candidate, starts[0], bounds, generator)
    if confirmed is not None:
        best = _finish(likelihood, confirmed, bounds)
    else:
        notes += ("all rows from the start, for few of them may have missed something",)
        best = _best_climb(likelihood, starts, bounds)
    return replace(best, evaluations=likelihood.evaluations - before, notes=notes)


def better_of(first: Found, second: Found) -> Found:
    """The second if its maximum is higher by more than rounding, with the evaluations of both."""
    is_higher = second.value > first.value + _HIGHER * abs(first.value)
    is_higher = is_higher or not math.isfinite(first.value)
    found = second if is_higher else first
    return replace(found, evaluations=first.evaluations + second.evaluations)


def _walked(likelihood: Likelihood, found: Found, bounds: Array) -> Found:
    """Newton's steps from an end that is no maximum yet, for one target."""
    if likelihood.Y.shape[1] != 1 or found.settled or not math.isfinite(found.value):
        return found
    again = walk(likelihood, found.theta, bounds)
    if again.value < found.value:
        return found
    return replace(again, evaluations=found.evaluations + again.evaluations)


def _best_climb(likelihood: Likelihood, starts: list[Array], bounds: Array) -> Found:
    ends = [climb(likelihood, start, bounds) for start in starts]
    return max(ends, key=lambda found: found.value)


def _confirmed(
    likelihood: Likelihood,
    theta: Array,
    start: Array,
    bounds: Array,
    generator: np.random.Generator,
) -> Array | None:
    """From where to go on with all rows; None if few of them may have missed something.

    They have not if little is left for noise, and no rough guess leads to more on some other rows.
    """
    structure = likelihood.structure
    square = float(np.mean(likelihood.Y**2)) + 1e-300
    noise = sum(term.amplitude(theta) for term in structure.terms if term.family == NOISE)
    if noise + float(likelihood.noise.mean()) > _NOISY * square:
        return None
    n = len(likelihood.X)
    sample = _part(likelihood, generator.permutation(n)[: min(n, _PROBED)])
    reached = sample.value(theta)
    for guess in _guesses(structure, start, likelihood.X.std(axis=0), square):
        if sample.value(np.clip(guess, *bounds.T)) > reached:
            # These rows have their maximum elsewhere: the same one, a little further?
            ends = [_finish(sample, begin, bounds) for begin in (theta, guess)]
            least = ends[1].value - _CLOSE * abs(ends[1].value)
            return ends[0].theta if ends[0].settled and ends[0].value >= least else None
    return theta


def _guesses(structure: Structure, start: Array, spread: Array, square: float) -> Iterator[Array]:
    """Rough parameters: shorter and shorter length scales, with little noise."""
    spread = np.where(spread > 0, spread, 1.0)
    for share in (0.1, 0.01):
        for own, factor in (*((True, f) for f in (1.0, 0.5, 0.25)), *((False, f) for f in _SHARES)):
            guess = start.copy()
            for term in structure.terms:
                if term.family == NOISE and len(term.factors):
                    guess[term.factors[0]] = math.log(share * square)
                elif term.family >= 0 and len(term.factors):
                    guess[term.factors[0]] = math.log(square)
                places = term.length_places
                if len(places):
                    wide = spread if len(places) > 1 else np.array([spread.mean()])
                    lengths = np.exp(start[places]) if own else wide
                    guess[places] = np.log(factor * lengths)
            yield guess


def has_learned(value: float, Y: Array) -> bool:
    """Whether targets are more likely than as independent noise of their own size.

    Of targets that are zero everywhere there is nothing to learn.
    """
    n, k = Y.shape
    if not (np.abs(Y) > 1e-12).any():
        return True
    noise = np.log(2 * math.pi * (np.mean(Y**2, axis=0) + 1e-300)) + 1
    return bool(value > -0.5 * n * float(noise.sum()) + _LEARNED * n * k)


def scales_of(structure: Structure, theta: Array, X: Array, Y: Array, bounds: Array) -> Array:
    """Parameters at the scales of the data: amplitudes of the targets, lengths of the columns."""
    square = max(float(np.mean(Y**2)), 1e-300)
    # Rows are about sqrt(2 d) spreads apart.
    spread = X.std(axis=0) * math.sqrt(X.shape[1])
    spread = np.where(spread > 0, spread, 1.0)
    guess = theta.copy()
    for term in structure.terms:
        if len(term.factors):
            share = 0.1 if term.family == NOISE else 1.0
            guess[term.factors[0]] = math.log(share * square)
        places = term.length_places
        if len(places):
            wide = spread if len(places) > 1 else np.array([math.sqrt(float(np.mean(spread**2)))])
            guess[places] = np.log(wide)
    return np.clip(guess, bounds[:, 0], bounds[:, 1])


def warn_unlearned(who: str, value: float) -> None:
    """Say that the process knows no more than the size of the targets."""
    warnings.warn(
        f"{who} learned nothing: the targets are no more likely (log marginal likelihood "
        f"{value:.6g}) than as independent noise of the same size, and predictions between the "
        "rows say little. Standardise the columns, set normalize_y=True, add a WhiteKernel() to "
        "the kernel, or give it length scales of the size of the data.",
        ConvergenceWarning,
        stacklevel=4,
    )


def _few(n: int) -> int:
    """How many rows the first stage takes."""
    return min(_FEW, max(_FEW // 2, n // 4))


def _first_stage(
    likelihood: Likelihood, starts: list[Array], bounds: Array, generator: np.random.Generator
) -> tuple[list[Array], tuple[str, ...]]:
    """Maxima that samples of few rows find; none if hardly any of them shows a signal.

    The likelihood has several maxima, and which one a sample leads to is chance: the first start is
    tried on several samples, further ones on one each.
    """
    size = _few(len(likelihood.X))
    parts = [
        _part(likelihood, generator.permutation(len(likelihood.X))[:size]) for _ in range(_SAMPLES)
    ]
    tries = [(part, starts[0]) for part in parts]
    tries += [(parts[i % _SAMPLES], start) for i, start in enumerate(starts[1:])]
    found, signals = [], 0
    for part, start in tries:
        end = climb(part, start, bounds)
        if math.isfinite(end.value):
            found.append(end)
            noise = math.log(2 * math.pi * float(np.mean(part.Y**2)) + 1e-300) + 1
            signals += end.value + 0.5 * size * noise > _SIGNAL * size
    count = sum(end.evaluations for end in found)
    notes = (f"{size:,} rows, {counted(len(tries), 'time')}: {counted(count, 'evaluation')}",)
    # Hardly more than noise in so few rows: trust nothing that they say.
    return ([end.theta for end in found] if 2 * signals > len(tries) else []), notes


def _best(likelihood: Likelihood, candidates: list[Array]) -> Array:
    """The candidate that is most likely with more rows; those that nearly agree count once."""
    different: list[Array] = []
    for theta in candidates:
        if all(float(np.abs(theta - other).max()) > _APART for other in different):
            different.append(theta)
    if len(different) == 1:
        return candidates[0]
    values = [likelihood.value(theta) for theta in different]
    return different[int(np.argmax(values))]


def _finish(likelihood: Likelihood, theta: Array, bounds: Array) -> Found:
    """Newton's steps; the other method, if they do not arrive."""
    found = walk(likelihood, theta, bounds)
    if found.settled:
        return found
    again = climb(likelihood, found.theta, bounds)
    count = found.evaluations + again.evaluations
    return Found(again.theta, again.value, count, again.settled)


def _part(likelihood: Likelihood, rows: NDArray[np.intp]) -> Likelihood:
    return Likelihood(
        likelihood.structure, likelihood.X[rows], likelihood.Y[rows], likelihood.noise[rows]
    )


def warn_unsettled(found: Found, gradient: Array) -> None:
    """Say how steep the likelihood still is where the search stopped."""
    warnings.warn(
        "The search for kernel parameters stopped before the likelihood was level: its largest "
        f"slope in theta is {float(np.abs(gradient).max()):.3g} after "
        f"{counted(found.evaluations, 'evaluation')}. Scale the data, widen the bounds, or give "
        "other starting values.",
        ConvergenceWarning,
        stacklevel=4,
    )
