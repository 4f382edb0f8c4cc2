"""Model files: data, never code.

A model file is a zip archive that holds one JSON header, ``model.json``, and one ``.npy`` file per
array. Reading one builds objects of known classes from plain values and does nothing else: there
is no pickle in it, nothing is unpacked to disk, and no name in the file is ever imported.

===============  ==================================================================
module           holds
===============  ==================================================================
``registry``     which classes a file may name, scikit-learn's with their schemas
``codec``        values to JSON and arrays, and back
``typecheck``    whether values are what their class says
``archive``      the zip archive, read with suspicion, written whole or not at all
``files``        :func:`save`, :func:`load` and :func:`read`
===============  ==================================================================

In: a fitted model, or a file. Out: a file, or the model. A class of one's own (a loss, a penalty,
an estimator) is made savable by one line, ``trueline.persistence.register(MyClass)``, on both
sides: where it is saved and where it is loaded.
"""

from trueline.persistence.files import FORMAT, VERSION, ModelFile, load, read, save
from trueline.persistence.registry import known_classes, register

__all__ = [
    "FORMAT",
    "VERSION",
    "ModelFile",
    "known_classes",
    "load",
    "read",
    "register",
    "save",
]
