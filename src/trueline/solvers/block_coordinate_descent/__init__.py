"""Block coordinate descent on working sets: groups of columns, and columns with several targets."""
