"""Feature maps phi(x): what happens to data before a linear model sees them.

========================  ==================================================================
module                    holds
========================  ==================================================================
``base``                  what maps share, and the design that they make
``polynomials``           orthogonal polynomials, products of columns
``radial``                bumps at chosen or learned centres
``fourier``               sines and cosines: periods, and random ones for a kernel
``text``                  words, pieces of words, and style
``tables``                tables of any kind as one design
``formula``               the same by a formula
``chained``               what earlier classifiers say, for later ones
``translation``           how good a translation may be
``translation_models``    what is learned of texts for that
``annotations``           what taggers and parsers from outside read in both texts, counted
========================  ==================================================================

Every map is a scikit-learn transformer that names its columns. In: rows, tables or texts. Out: the
columns of a linear model.
"""
