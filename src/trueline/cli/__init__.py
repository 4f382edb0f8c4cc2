"""The ``trueline`` command: fit, explain, verify and predict from a CSV file.

===============  ==================================================================
module           holds
===============  ==================================================================
``app``          the commands, their options and what happens when something fails
``families``     which models there are; a new family is one line there
``commands``     what the commands do
``separation``   what ``trueline separability`` does
``demo``         the tour on built-in data
``show``         tables and bars for the terminal
``picture``      the demo's picture
===============  ==================================================================

Only ``app`` and ``families`` are imported at the start, so that ``trueline --help`` is quick.
"""

from trueline.cli.app import app

__all__ = ["app"]
