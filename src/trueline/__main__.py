"""``python -m trueline`` is the ``trueline`` command."""

from trueline.cli import app

if __name__ == "__main__":
    app(prog_name="trueline")
