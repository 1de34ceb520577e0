"""Editors that ship with ConvergeBench: reference, providers, local, and your own."""
