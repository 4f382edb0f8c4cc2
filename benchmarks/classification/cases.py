"""The cases: what is minimised on which rows, what a call may take, and what should be reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.classification.objective import ClassData
from benchmarks.judged import Target
from benchmarks.problems import clouds, dense_classes, images, text_classes

__all__ = ["CASES", "PROBLEMS", "TARGETS", "Case", "data_of"]

Rows = tuple[Any, Any]


def _size(full: int, scale: float, least: int) -> int:
    return max(min(full, least), round(full * scale))


def _text(scale: float) -> Rows:
    columns = _size(200_000, scale, 400)
    return text_classes(_size(100_000, scale, 300), columns, min(80, columns // 20), seed=21)


def _dense(scale: float) -> Rows:
    return dense_classes(_size(500_000, scale, 400), _size(50, scale**0.5, 8), seed=22)


#: From the scale (1 is the size of the name) to X and y.
PROBLEMS: dict[str, Callable[[float], Rows]] = {
    "dense": _dense,
    "text": _text,
    "images": lambda scale: images(_size(60_000, scale, 200), seed=23),
    "letters": lambda scale: clouds(_size(20_000, scale, 400), 16, 26 if scale == 1 else 4, seed=1),
}
_SIZES = {
    "dense": "dense 500,000 x 50",
    "text": "sparse 100,000 x 200,000, 80 entries in a row",
    "images": "60,000 x 784, 10 classes",
    "letters": "20,000 x 16, 26 classes",
}


@dataclass(frozen=True)
class Case:
    """What is minimised on which rows; C = 1 throughout.

    Attributes
    ----------
    title : str
    task : str
        Contestants that are tuned for it take part.
    problem : str
    limit : float
        Seconds for one call.
    loss, penalty, scheme : str
        As in ClassData.
    fit_intercept : bool
    """

    title: str
    task: str
    problem: str
    limit: float
    loss: str = "logistic"
    penalty: str = "l2"
    scheme: str = "two"
    fit_intercept: bool = False


def data_of(case: Case, X: Any, y: Any) -> ClassData:
    """What a contestant is given."""
    return ClassData(
        X, y, case.fit_intercept, loss=case.loss, penalty=case.penalty, scheme=case.scheme
    )


def _cases() -> dict[str, Case]:
    out = {}

    def add(name: str, what: str, task: str, problem: str, limit: float, **more: Any) -> None:
        out[f"{name}_{problem}"] = Case(
            f"{what}, C = 1, {_SIZES[problem]}", task, problem, limit, **more
        )

    both = ("dense", "text")
    for problem in both:
        add("logistic", "Logistic, l2", "logistic", problem, 30.0)
    intercept = {"fit_intercept": True}
    what = "Logistic, l2, with an intercept"
    add("intercept", what, "logistic_intercept", "text", 30.0, **intercept)
    for problem in both:
        add("l1", "Logistic, l1", "logistic_l1", problem, 30.0, penalty="l1")
    for problem in both:
        add("hinge", "Hinge, l2", "hinge", problem, 40.0, loss="hinge")
    for problem in both:
        what = "Squared hinge, l2"
        add("squared_hinge", what, "squared_hinge", problem, 30.0, loss="squared_hinge")
    add("softmax", "Softmax, l2", "softmax", "images", 60.0, loss="softmax")
    for problem in ("letters", "images"):
        add("rest", "Logistic, one-vs-rest", "one_vs_rest", problem, 60.0, scheme="rest")
        add("one", "Logistic, one-vs-one", "one_vs_one", problem, 60.0, scheme="one")
    squared = {"loss": "squared_hinge"}
    for scheme, words in (("rest", "one-vs-rest"), ("one", "one-vs-one")):
        what, task = f"Squared hinge, {words}", f"squared_hinge_{words.replace('-', '_')}"
        add(f"{scheme}_squared_hinge", what, task, "images", 60.0, scheme=scheme, **squared)
    return out


CASES = _cases()

TARGETS = (
    Target("logistic_dense", 2.0),
    Target("logistic_text", 1.0),
    Target("intercept_text", 1.0),
    Target("l1_dense", 2.0),
    Target("l1_text", 1.5),
    Target("hinge_dense", 10.0),
    Target("hinge_text", 1.5, "LIBLINEAR (dual)"),
    Target("squared_hinge_dense", 5.0),
    Target("squared_hinge_text", 1.5),
    Target("softmax_images", 3.0),
    *(Target(name, 2.0) for name in CASES if name.startswith(("rest", "one"))),
)
