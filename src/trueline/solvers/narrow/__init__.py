"""Many problems of two classes on few columns, by compiled steps of Newton's method."""
