"""Newton's method for smooth losses with a squared penalty.

``solver`` is the planned solver for few columns (IRLS on standardised rows, in ``dense``), ``cg``
the one for many columns (Newton-CG), ``batched`` the one for many problems on the same rows.
In: a smooth problem or a set of them. Out: a Solution each.
"""
