"""One pass over many rows, and one row at a time, beside other libraries."""
