"""The words of lectures on linear models, each with the call that does it here.

The words themselves are in ``terms.toml`` beside this file. A word is found in British and American
spelling, with or without hyphens, in the plural, and under its other names.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("terms.toml")


@dataclass(frozen=True)
class Term:
    """A word of a lecture.

    Attributes
    ----------
    name : str
    definition : str
        In one or two sentences.
    formula, picture, page : str
        Empty where there is none. A picture is a call from :mod:`trueline.plots`; a page is the
        name of a page of the documentation.
    call : str
        Code that runs after ``from trueline import *``; the rows are called ``X``, numbers ``y``,
        two classes ``signs``, several classes ``labels``, strings ``texts``.
    aliases, see : tuple of str
        Other names of it, and the names of related words.
    """

    name: str
    definition: str
    call: str
    formula: str = ""
    picture: str = ""
    page: str = ""
    aliases: tuple[str, ...] = ()
    see: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self.name, *(f"    {part}" for part in (self.definition, self.formula) if part)]
        told = {
            "call": self.call,
            "picture": self.picture,
            "page": self.page and f"docs/{self.page}.rst",
            "also called": ", ".join(self.aliases),
            "see": ", ".join(self.see),
        }
        lines += [f"    {label + ':':<13}{text}" for label, text in told.items() if text]
        return "\n".join(lines)

    __repr__ = __str__


@cache
def terms() -> tuple[Term, ...]:
    """All words, in the alphabetical order of their names."""
    given = tomllib.loads(_FILE.read_text(encoding="utf-8"))["term"]
    read = (
        {key: tuple(v) if isinstance(v, list) else v for key, v in one.items()} for one in given
    )
    named: list[dict[str, Any]] = sorted(read, key=lambda one: str(one["name"]).lower())
    return tuple(Term(**one) for one in named)


def glossary(word: str) -> Term:
    """What a word of a lecture means, and the call that does it here.

    Parameters
    ----------
    word : str
        In British or American spelling, with or without hyphens, singular or plural.

    Returns
    -------
    Term
        Its definition, formula, call, picture and page; printing it shows them.

    Raises
    ------
    ValueError
        If the word is not known; the message names the nearest ones.

    Examples
    --------
    >>> from trueline import glossary
    >>> glossary("Weight decay").call
    'Ridge(alpha=1.0).fit(X, y)'
    >>> glossary("generalized inverses").name
    'generalised inverse'
    """
    known = _known()
    found = known.get(_plain(word))
    if found is None:
        near = get_close_matches(_plain(word), known, n=5, cutoff=0.5)
        names = list(dict.fromkeys(known[one].name for one in near))
        advice = f"Did you mean {', '.join(names)}?" if names else "trueline help lists all."
        raise ValueError(f"{word!r} is not in the glossary. {advice}")
    return found


@cache
def _known() -> dict[str, Term]:
    """Each name and each other name in plain spelling; a name goes before another's alias."""
    others = {_plain(alias): term for term in terms() for alias in term.aliases}
    return others | {_plain(term.name): term for term in terms()}


def _plain(word: str) -> str:
    """Lower case, American spelling, no hyphens or apostrophes, words in the singular."""
    text = re.sub(r"[-_/]", " ", word.lower()).replace("'", "")
    text = " ".join(_singular(part) for part in text.split())
    return re.sub(r"is(e|ed|er|ing|ation|able|ability)\b", r"iz\1", text)


def _singular(word: str) -> str:
    if word.endswith(("ss", "us", "is")) or len(word) < 4:
        return word
    return word[:-1] if word.endswith("s") else word
