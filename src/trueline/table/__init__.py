"""Tables for the command line: a CSV file, what its columns are, and the design they become.

This is a small reader on top of the standard library. Inside Python, estimators take DataFrames
and arrays directly; of this they use the encoding of categories. In: a file. Out: columns, and a
design with names.
"""

from trueline.table.columns import Column, Guess, guess_kind, guess_task
from trueline.table.encoding import Encoded, Encoding, Source, encode
from trueline.table.reading import Table, read_table

__all__ = [
    "Column",
    "Encoded",
    "Encoding",
    "Guess",
    "Source",
    "Table",
    "encode",
    "guess_kind",
    "guess_task",
    "read_table",
]
