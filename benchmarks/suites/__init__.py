"""The suites by name; each module has TITLE, run(request) and tables(store)."""
