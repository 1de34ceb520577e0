"""Bringing what is already there: images, scores and tables of others, as runs of ours."""
