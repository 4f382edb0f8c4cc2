"""Sphinx configuration. `make docs` builds into build/docs, with warnings as errors."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for the local extensions `generate` and `mathml`

project = "trueline"
author = "The trueline developers"
copyright = author
release = installed_version("trueline")
version = ".".join(release.split(".")[:2])

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "generate",
    "mathml",
]
exclude_patterns = ["build", "skeletons", "**/GALLERY_HEADER.rst"]
nitpicky = False

autosummary_generate = True
templates_path = ["_templates"]
autodoc_typehints = "none"  # numpydoc sections carry the types
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "furo"
html_title = f"trueline {version}"
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["trueline.css"]
html_math_renderer = "mathml"

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,  # an example that fails is a broken promise
    "download_all_examples": False,
    "show_memory": False,
    "capture_repr": ("_repr_html_",),  # what is printed, not what a line happens to return
    "min_reported_time": 5,
    "remove_config_comments": True,
    "show_signature": False,
}


def shallow_navigation(app, page, template, context, doctree):
    """The sidebar lists the pages, not each of the names on the page of the interface.

    The tree of all names would be copied for every page, which is most of the time of a build.
    """
    whole = context["toctree"]
    context["toctree"] = lambda **options: whole(**{**options, "maxdepth": 1})


def of_this_package(app, what, name, member, skip, options):
    """Leave out scikit-learn's own methods, which are wrapped where they take paths of files."""
    return True if str(getattr(member, "__module__", "")).startswith("sklearn.") else None


def setup(app):
    """Before the theme, whose own handler makes the sidebar."""
    app.connect("html-page-context", shallow_navigation, priority=400)
    app.connect("autodoc-skip-member", of_this_package)
