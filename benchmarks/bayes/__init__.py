"""Evidence and processes beside other libraries: what ``python -m benchmarks bayes`` measures."""
