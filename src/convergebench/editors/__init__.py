"""Editors that ship with ConvergeBench."""
