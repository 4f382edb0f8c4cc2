"""Many classes from two: a multiclass problem as several binary ones.

Every scheme is a code book: a table of -1, 0 and +1 with one row per class and one column per
binary problem, which tells on which side of the problem the class stands, or that it takes no part
(E. L. Allwein, R. E. Schapire, Y. Singer, "Reducing multiclass to binary: a unifying approach for
margin classifiers", J. Machine Learning Research 1 (2000) 113-141). In: X, labels and a classifier
of two classes. Out: a classifier of all of them, with one certificate.

=====================  ===========================================================
module                 holds
=====================  ===========================================================
``one_vs_rest``        one column per class: the class against all others
``one_vs_one``         one column per pair of classes
``output_code``        any code book, random or designed, and how it is decoded
``parts``              fitting one binary problem, and asking it for scores
``joint_fits``         binary problems that share a factorisation, moments or rows
``base``               what the schemes share: fits, batches, one proof
=====================  ===========================================================
"""

from trueline.estimators.multiclass.one_vs_one import OneVsOneClassifier
from trueline.estimators.multiclass.one_vs_rest import OneVsRestClassifier
from trueline.estimators.multiclass.output_code import OutputCodeClassifier

__all__ = ["OneVsOneClassifier", "OneVsRestClassifier", "OutputCodeClassifier"]
