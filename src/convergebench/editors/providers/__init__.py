"""Editors behind an API: one file per provider, its models in a file under `models/`."""
