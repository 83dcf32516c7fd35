"""Rows of a benchmark in a file that grows line by line, so that a run that is stopped keeps what it has."""

import json


def read(path):
    """The rows so far; none where there is no file yet."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path and path.exists() else []


def keep(path, row):
    """One row more; nothing where no file was asked for."""
    if path:
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
