"""Model selection that costs about one pass: fold moments, closed-form leave-one-out."""
