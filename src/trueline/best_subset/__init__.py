"""Best subset selection: the best support of k columns, with a proof.

``statement`` forms the problem, says what rounding does to it and certifies the answer;
``exchange`` finds good supports; ``search`` proves by branch and bound, size by size, that there is
no better one; ``node`` is one step of it, ``relaxation`` gives the lower bounds, ``elimination``
projects chosen columns out.
"""
