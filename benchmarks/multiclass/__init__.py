"""The multiclass schemes beside scikit-learn's: cases, and the process that measures one."""
