"""Many problems of two classes on the same wide rows, solved together."""
