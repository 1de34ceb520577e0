"""Bringing a suite's files here: by their hash from folders, or from their addresses.

    done = prepare_suite(open_suite("my-suite"), search=[Path("photos")])
    done.complete, done.missing

A file appears under its name only when it is whole and verified.
"""

from convergebench.preparation.bringing import prepare_suite
from convergebench.preparation.result import Preparation, Prepared

__all__ = ["Preparation", "Prepared", "prepare_suite"]
