"""Formulas as MathML, which browsers draw themselves: no scripts, no network.

docutils brings the converter. It knows most of LaTeX; `_spelled_out` writes the rest in its words.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def _spelled_out(tex: str) -> str:
    r"""``\tfrac12`` with braces, ``\big(`` without its size, ``\dots`` as ``\ldots``.

    Names of operators lose their star: limits stand beside them. What carries an index or an
    exponent is put in braces, lest only its last sign carry it.
    """
    tex = re.sub(r"\\([td]?frac)\s*(\w)\s*(\w)", r"\\\1{\2}{\3}", tex)
    tex = re.sub(r"\\[bB]igg?(?![a-zA-Z])", "", tex)
    tex = tex.replace(r"\operatorname*", r"\operatorname")
    tex = re.sub(r"(\\lVert.*?\\rVert)(?=[\^_])", r"{\1}", tex)
    tex = re.sub(r"\\hat\s*\{?(\\?\w+)\}?(?=[\^_])", r"\\hat{\1}{}", tex)
    return re.sub(r"\\dots(?![a-zA-Z])", r"\\ldots", tex)


def visit_math(self: Any, node: nodes.math) -> None:
    self.body.append(tex2mathml(_spelled_out(node.astext())))
    raise nodes.SkipNode


def visit_displaymath(self: Any, node: nodes.math_block) -> None:
    formula = tex2mathml(_spelled_out(node.astext()), as_block=True)
    self.body.append(f'<div class="math">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's entry point."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
