"""Block coordinate descent on working sets: groups of columns, and columns with several targets.

In: a squared-loss problem whose penalty is a sum of norms of blocks. Out: a Solution, its gap
proven by a dual point. ``working_set`` is the loop, ``steps`` has the block and Newton steps.
"""
