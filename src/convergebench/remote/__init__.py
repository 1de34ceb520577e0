"""Runs on object storage: an address, the objects below it, and a working copy on this machine."""
