"""Sphinx configuration. `make docs` builds into build/docs, with warnings as errors."""

import sys
from html import escape
from importlib.metadata import version as installed_version
from pathlib import Path

from sphinx import addnodes

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

    Sphinx resolves the tree of all names anew for every page: that took half the time of a build.
    """
    builder, root = app.builder, app.env.get_doctree(app.config.root_doc)

    def item(title, name):
        current = " current" if name == page else ""
        link = builder.get_relative_uri(page, name) or "#"
        text = escape(title or app.env.titles[name].astext())
        link = f'<a class="reference internal" href="{link}">{text}</a>'
        return f'<li class="toctree-l1{current}">{link}</li>'

    def toctree(**options):
        return "".join(
            f'<p class="caption"><span class="caption-text">{escape(part["caption"] or "")}</span>'
            f"</p><ul>{''.join(item(*entry) for entry in part['entries'])}</ul>"
            for part in root.findall(addnodes.toctree)
        )

    context["toctree"] = toctree


def of_this_package(app, what, name, member, skip, options):
    """Leave out scikit-learn's own methods, which are wrapped where they take paths of files."""
    return True if str(getattr(member, "__module__", "")).startswith("sklearn.") else None


def setup(app):
    """Before the theme, whose own handler makes the sidebar."""
    app.connect("html-page-context", shallow_navigation, priority=400)
    app.connect("autodoc-skip-member", of_this_package)
