"""Many classes from two: a multiclass problem as several binary ones.

Every scheme is a code book: a table of -1, 0 and +1 with one row per class and one column per
binary problem, which tells on which side of the problem the class stands, or that it takes no part
(E. L. Allwein, R. E. Schapire, Y. Singer, "Reducing multiclass to binary: a unifying approach for
margin classifiers", J. Machine Learning Research 1 (2000) 113-141).

=====================  ===========================================================
module                 holds
=====================  ===========================================================
``one_vs_rest``        one column per class: the class against all others
``one_vs_one``         one column per pair of classes
``output_code``        any code book, random or designed
``code_books``         the designs, their distances, and scores of classes from those of columns
``coupling``           from the probabilities of the columns to those of the classes
``parts``              fitting one binary problem, and asking it for scores
``linear``             the scores of linear parts, all by one product
``sharing``            which binary problems share their work, and how
``together``           least squares that share a factorisation, or moments
``margins``            linear classifiers that share one run over the rows
``proof``              the certificates of the parts, as one
``base``               what the schemes have in common
=====================  ===========================================================
"""

from trueline.estimators.multiclass.one_vs_one import OneVsOneClassifier
from trueline.estimators.multiclass.one_vs_rest import OneVsRestClassifier
from trueline.estimators.multiclass.output_code import OutputCodeClassifier

__all__ = ["OneVsOneClassifier", "OneVsRestClassifier", "OutputCodeClassifier"]
