"""Sequential minimal optimisation: the dual of support vector machines."""
