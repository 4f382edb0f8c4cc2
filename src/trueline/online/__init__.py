"""Learning one row at a time: update rules, passes over rows, streams, and what is recorded.

====================  ===================================================================
module                holds
====================  ===================================================================
``rules``             by how much one row changes the weights, for every rule
``passes``            passes until the stopping rule says so; the order of the rows
``pass_kernels``      one compiled pass: two classes, penalties, weights for each class
``adaptive``          one pass with a learning rate of its own for every weight
``perceptron_forms``  textbook, batch, pocket, voted and dual perceptrons
``rows``              rows as the kernels read them, dense and sparse
``stream``            rows that come as they are, with features by name
====================  ===================================================================

In: rows in an order, a rule and its rate. Out: weights that changed in place, and a record of
mistakes and updates. The estimators are in ``trueline.estimators.online``.
"""
