"""Parameters declared one by one: __init__ and the constraints that are made of them."""

import inspect

import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import InvalidParameterError

import trueline
from trueline.estimators.shared.parameters import (
    KW_ONLY,
    REQUIRED,
    given,
    hidden,
    one_of,
    parameters,
)


@parameters()
class Model(BaseEstimator):
    alpha: float = given(1.0, "[0, inf)", None)
    _: KW_ONLY
    fit_intercept: bool = True
    max_iter: int = given(10, "int [1, inf)")
    kind: str = given("a", one_of("a", "b"), hidden("c"))

    def check(self):
        self._validate_params()
        return self


@parameters(without=["kind"])
class Derived(Model):
    _: KW_ONLY
    max_iter: int = given(20, "int [1, 30]")
    share: float = given(0.5, "(0, 1]")


@parameters()
class Wrapper(BaseEstimator):
    estimator: object = given(REQUIRED, object)


def test_the_signature_is_what_was_declared():
    expected = "(alpha: float = 1.0, *, fit_intercept: bool = True, max_iter: int = 10, "
    assert str(inspect.signature(Model)).startswith(expected + "kind: str = 'a')")
    assert Model.__init__.__qualname__ == "Model.__init__"


def test_parameters_are_set_and_nothing_else():
    model = Model(2.0, kind="b")
    given_ = {"alpha": 2.0, "fit_intercept": True, "max_iter": 10, "kind": "b"}
    assert vars(model) == model.get_params() == vars(clone(model)) == given_
    assert not hasattr(Model, "alpha"), "a default is no attribute of the class"


def test_those_by_keyword_only_are_not_taken_by_place():
    with pytest.raises(TypeError, match=r"Model.__init__\(\) takes from 1 to 2 positional"):
        Model(2.0, False)
    with pytest.raises(TypeError, match="unexpected keyword argument 'beta'"):
        Model(beta=1)


def test_a_derived_class_takes_over_what_it_does_not_leave_out():
    assert list(inspect.signature(Derived).parameters) == [
        "alpha",
        "fit_intercept",
        "max_iter",
        "share",
    ]
    assert Derived().max_iter == 20
    assert Model().max_iter == 10
    with pytest.raises(TypeError, match="kind"):
        Derived(kind="a")


def test_what_has_no_default_must_be_given():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'estimator'"):
        Wrapper()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Model(-1.0), r"'alpha' parameter of Model must be a float in the range \[0.0, inf\)"),
        (Model(max_iter=0), r"'max_iter' .* must be an int in the range \[1, inf\)"),
        (Model(fit_intercept=2), "'fit_intercept' .* must be an instance of 'bool'"),
        (Model(kind="d"), r"'kind' .* must be a str among \{'[ab]', '[ab]'\}"),
        (Derived(max_iter=31), r"'max_iter' .* must be an int in the range \[1, 30\]"),
        (Derived(share=0), r"'share' .* must be a float in the range \(0.0, 1.0\]"),
    ],
    ids=repr,
)
def test_what_is_not_allowed_is_refused_in_the_words_of_scikit_learn(model, message):
    with pytest.raises(InvalidParameterError, match=message):
        model.check()


@pytest.mark.parametrize("model", [Model(None), Model(0), Model(kind="c"), Derived(share=1)])
def test_what_is_allowed_passes(model):
    assert model.check() is model


def test_a_parameter_without_its_constraint_is_a_mistake_of_the_author():
    with pytest.raises(TypeError, match="alpha needs given"):

        @parameters()
        class Unfinished(BaseEstimator):
            alpha: float = 1.0


def test_what_a_fit_finds_is_not_declared_among_parameters():
    with pytest.raises(TypeError, match="what a fit finds is declared where it is set"):

        @parameters()
        class Confused(BaseEstimator):
            coef_: float


def _estimators():
    found = (getattr(trueline, name) for name in trueline.__all__)
    own = [one for one in found if getattr(one, "__module__", "").startswith("trueline.estimators")]
    return [one for one in own if inspect.isclass(one) and hasattr(one, "explain")]


@pytest.mark.parametrize("cls", _estimators(), ids=lambda cls: cls.__name__)
def test_every_explanation_can_be_asked_for_all(cls):
    assert "all" in inspect.signature(cls.explain).parameters


@parameters()
class Extra(BaseEstimator):
    _: KW_ONLY
    weights: float = given(1.0, "[0, inf)")


@parameters(without=["kind"])
class Composed(Extra, Model):
    pass


def test_parameters_of_all_bases_are_taken_over():
    taken = {"alpha": 1.0, "fit_intercept": True, "max_iter": 10, "weights": 1.0}
    assert Composed().get_params() == taken


def test_what_a_base_says_of_a_parameter_completes_the_docstring():
    entry = "    cache_size : float, default=200\n        Megabytes for kernel values.\n"
    assert all(getattr(trueline, name).__doc__.count(entry) == 1 for name in ("SVC", "NuSVR"))


def test_what_a_class_says_itself_is_not_said_again():
    said = trueline.AdaptiveLasso.__doc__
    assert "    coef_ : array of shape (d,)\n" in said  # its base has several targets
    assert said.count("    coef_ : ") == said.count("    max_iter : ") == 1
    assert "    l1_ratio : " not in said  # which it does without
