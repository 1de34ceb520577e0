"""Weights: which there are, where they come from, finding them, and reading them safely.

    path = weights.find("lpips-alex")      # verified, or MetricUnavailable with the command to run
    parameters = weights.arrays(path)      # name -> array; runs no code that the file brings

The files in `catalogue/` list every set with licence, size, SHA-256 and sources; `pulling` brings
them here. No pickle is loaded unrestricted: a file that asks for more than arrays is refused.
"""

from convergebench.weights.entries import catalogue
from convergebench.weights.lookup import find
from convergebench.weights.reading import arrays

__all__ = ["arrays", "catalogue", "find"]
