"""Features of a sentence and its translation, for estimating the quality of the translation.

====================  =========================================================
module                holds
====================  =========================================================
``corpus``            texts as one array of numbers
``language_model``    counts and probabilities of runs of words
``lexicon``           which words translate which, learned from pairs
``transformer``       ``TranslationFeatures``
====================  =========================================================
"""
