"""The commands of ``trueline`` and their options.

Each command imports what it needs when it runs. An error is one line in red and exit code 2;
``--debug`` shows where it came from.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from trueline.cli.families import FAMILIES

_MODELS = ", ".join(["auto", *FAMILIES])

app = typer.Typer(
    name="trueline",
    help="Linear models with a proof: every fit carries a certificate that can be checked.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="The table: CSV, its first line names the columns; or Parquet, a folder, a pattern.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(help="Read batch by batch within so much: 500MB, 2GB. 1GB for Parquet, folders."),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A file written by 'trueline fit'.")]
Target = Annotated[str | None, typer.Option("--target", "-t", help="The column to predict.")]
Family = Annotated[str, typer.Option("--model", "-m", help=f"One of: {_MODELS}.")]
Alpha = Annotated[
    float | None,
    typer.Option(
        help="Strength of the penalty (ridge, lasso, elastic-net, quantile, huber, ...).", min=0.0
    ),
]
Mixture = Annotated[
    float | None,
    typer.Option(
        "--l1-ratio", help="Share of the lasso (elastic-net, elastic-net-cv).", min=0.0, max=1.0
    ),
]
Rule = Annotated[
    str | None,
    typer.Option(
        help="Strength of smallest error, min, or 1se: sparser (lasso-cv, elastic-net-cv)."
    ),
]
Quantile = Annotated[
    float | None,
    typer.Option(help="Which quantile, strictly between 0 and 1 (quantile)."),
]
Size = Annotated[int | None, typer.Option("--k", help="Number of columns (best-subset).", min=0)]
Criterion = Annotated[
    str | None,
    typer.Option(help="aic, aicc, bic, adjusted_r2 or cp (best-subset, stepwise); cv (stepwise)."),
]
Features = Annotated[
    str | None, typer.Option(help="Columns to use, as a,b,c; all that can be if not given.")
]
Drop = Annotated[str | None, typer.Option(help="Columns to leave out, as a,b,c.")]
Category = Annotated[
    str | None, typer.Option(help="Columns of numbers that are codes, not amounts, as a,b,c.")
]
DropMissing = Annotated[
    bool,
    typer.Option(
        "--drop-missing", help="Leave out rows with missing values, which are filled in otherwise."
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Fit classes also where the target does not look like classes."),
]
Standardize = Annotated[
    bool,
    typer.Option(
        "--standardize", help="Columns of mean 0 and deviation 1, which penalties treat alike."
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error came from.")]


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """One line in red instead of a traceback, and exit code 2."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if options.get("debug"):
                raise
            from trueline.cli.show import show_error

            show_error(error)
            raise typer.Exit(2) from None

    return run


def _split(names: str | None) -> list[str] | None:
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]


def _options(**options: Any) -> dict[str, Any]:
    """The options of the model that were given."""
    return {name: value for name, value in options.items() if value is not None}


def _show_version(wanted: bool) -> None:
    if wanted:
        from trueline import __version__

        typer.echo(f"trueline {__version__}")
        raise typer.Exit


@app.callback(epilog="Start with: [bold]trueline demo[/bold]")
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Linear models with a proof: every fit carries a certificate that can be checked."""


@app.command()
@_guarded
def demo(
    picture: Annotated[Path, typer.Option(help="Where to save the picture.")] = Path(
        "trueline-demo.png"
    ),
    debug: Debug = False,
) -> None:
    """A tour on built-in data: fit, explain, prove, and catch a forged coefficient."""
    from trueline.cli.demo import run_demo

    run_demo(picture)


@app.command()
@_guarded
def fit(
    data: Data,
    target: Annotated[str, typer.Option("--target", "-t", help="The column to predict.")],
    model: Family = "auto",
    alpha: Alpha = None,
    l1_ratio: Mixture = None,
    rule: Rule = None,
    quantile: Quantile = None,
    k: Size = None,
    criterion: Criterion = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to save the model.")] = Path(
        "model.trueline"
    ),
    features: Features = None,
    drop: Drop = None,
    category: Category = None,
    drop_missing: DropMissing = False,
    force: Force = False,
    standardize: Standardize = False,
    memory: Memory = None,
    debug: Debug = False,
) -> None:
    """Fit a model to a table, prove it, and save it."""
    from trueline.cli.commands import run_fit
    from trueline.cli.prepare import Request

    options = _options(
        alpha=alpha, l1_ratio=l1_ratio, rule=rule, quantile=quantile, k=k, criterion=criterion
    )
    lists = (_split(features), _split(drop), _split(category))
    request = Request(data, target, model, options, *lists, drop_missing, force, standardize)
    run_fit(request, out, memory)


@app.command()
@_guarded
def explain(
    path: Annotated[
        Path, typer.Argument(metavar="DATA.CSV|MODEL", help="A table, or a saved model.")
    ],
    target: Target = None,
    model: Family = "auto",
    alpha: Alpha = None,
    l1_ratio: Mixture = None,
    rule: Rule = None,
    quantile: Quantile = None,
    k: Size = None,
    criterion: Criterion = None,
    features: Features = None,
    drop: Drop = None,
    category: Category = None,
    drop_missing: DropMissing = False,
    force: Force = False,
    standardize: Standardize = False,
    debug: Debug = False,
) -> None:
    """Show the plan for a table before fitting, or what happened in a saved model."""
    from trueline.cli.commands import run_explain
    from trueline.cli.prepare import Request

    options = _options(
        alpha=alpha, l1_ratio=l1_ratio, rule=rule, quantile=quantile, k=k, criterion=criterion
    )
    lists = (_split(features), _split(drop), _split(category))
    run_explain(Request(path, target, model, options, *lists, drop_missing, force, standardize))


@app.command()
@_guarded
def verify(
    model: Model,
    data: Data,
    target: Target = None,
    memory: Memory = None,
    debug: Debug = False,
) -> None:
    """Check a model's proof against its data.

    Exit code 0 if it is proven, 3 if it is proven under a condition, which is printed, 1 if not.
    """
    from trueline.check import Verdict
    from trueline.cli.commands import run_verify

    codes = {Verdict.PROVEN: 0, Verdict.CONDITIONAL: 3, Verdict.NOT_PROVEN: 1}
    raise typer.Exit(codes[run_verify(model, data, target, memory).verdict])


@app.command()
@_guarded
def separability(
    data: Data,
    target: Target = None,
    intercept: Annotated[
        bool,
        typer.Option("--intercept/--no-intercept", help="Hyperplanes anywhere, or through zero."),
    ] = True,
    features: Features = None,
    drop: Drop = None,
    category: Category = None,
    drop_missing: DropMissing = False,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Decide whether hyperplanes separate the classes of a CSV file, and prove it."""
    from trueline.cli.comparing import run_separability
    from trueline.cli.prepare import Request

    columns = (_split(features), _split(drop), _split(category), drop_missing, force)
    if not run_separability(Request(data, target, "auto", {}, *columns), intercept):
        raise typer.Exit(1)


@app.command()
@_guarded
def compare(
    data: Data,
    target: Target = None,
    models: Annotated[
        str | None, typer.Option(help="Which ones, as ridge;lasso; all that suit if not given.")
    ] = None,
    folds: Annotated[int, typer.Option(help="Number of folds.", min=2)] = 5,
    scoring: Annotated[
        str | None, typer.Option(help="Any scorer of scikit-learn; r2 or accuracy if not given.")
    ] = None,
    rule: Annotated[str, typer.Option(help="Best mean score, min, or 1se: simplest near it.")] = (
        "min"
    ),
    shuffle: Annotated[
        bool, typer.Option("--shuffle/--in-order", help="Rows in random folds, or as they come.")
    ] = True,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write the table, as CSV.")
    ] = None,
    features: Features = None,
    drop: Drop = None,
    category: Category = None,
    drop_missing: DropMissing = False,
    force: Force = False,
    memory: Memory = None,
    debug: Debug = False,
) -> None:
    """Compare linear models on the same folds of a table; columns are standardised.

    Ctrl-C shows the models that are finished; the exit code is then 130.
    """
    from trueline.cli.comparing import Choices, run_compare
    from trueline.cli.prepare import Request
    from trueline.cli.streaming import compare_rows, is_streamed

    columns = (_split(features), _split(drop), _split(category), drop_missing, force)
    request = Request(data, target, "auto", {}, *columns)
    if is_streamed(data, memory):
        return compare_rows(request, folds, memory)
    names = None if models is None else [name.strip() for name in models.split(";")]
    choices = Choices(names, folds, scoring, rule, shuffle)
    if not run_compare(request, choices, out):
        raise typer.Exit(130)  # as of every command that Ctrl-C ended


@app.command()
@_guarded
def predict(
    model: Model,
    data: Data,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where to write the table; the terminal if not given."),
    ] = None,
    memory: Memory = None,
    debug: Debug = False,
) -> None:
    """Predict the target for the rows of a table."""
    from trueline.cli.commands import run_predict

    run_predict(model, data, out, memory)


@app.command()
@_guarded
def warm(
    into: Annotated[
        Path | None,
        typer.Option(help="Another folder, for all machines of this kind: to build a wheel."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Compile all loops for this machine now, so that no fit waits for a compiler."""
    from trueline.cli.warming import run_warm

    run_warm(into)


@app.command("help")
@_guarded
def help_on(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="WORD...", help="For example: weight decay.")
    ] = None,
    debug: Debug = False,
) -> None:
    """What a word of a lecture means, and the call that does it; all words if none is given."""
    from trueline.terms import glossary, terms

    if words:
        typer.echo(glossary(" ".join(words)))
    else:
        typer.echo("\n".join(term.name for term in terms()))
