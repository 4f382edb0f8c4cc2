"""Features of a sentence and its translation, for estimating the quality of the translation.

====================  =========================================================
file                  holds
====================  =========================================================
``corpus.py``         texts as one array of numbers
``language_model.py`` counts and probabilities of runs of words
``lexicon.py``        which words translate which, learned from pairs
``transformer.py``    ``TranslationFeatures``
====================  =========================================================
"""
