"""Linear classifiers: logistic and softmax regression, ridge on signs, fewest errors.

Also separability of classes, and probabilities for any classifier. In: X and labels of any type.
Out: scores, labels and where the model has them probabilities.
"""
