"""The ``trueline`` command: fit, explain, verify and predict from a CSV file.

===============  ==================================================================
module           holds
===============  ==================================================================
``app``          the commands, their options and what happens when something fails
``families``     which models there are; a new family is one line there
``prepare``      from a file and options to rows and a family of models
``commands``     what the commands do
``comparing``    what ``trueline compare`` and ``trueline separability`` do
``warming``      what ``trueline warm`` does
``demo``         the tour on built-in data
``model_text``   what is printed of a model, its proof and its explanation
``show``         tables and bars for the terminal, and the demo's picture
===============  ==================================================================

In: a CSV file and options. Out: text, model files and exit codes. Only ``app`` and ``families`` are
imported at the start, so that ``trueline --help`` is quick.
"""

from trueline.cli.app import app

__all__ = ["app"]
