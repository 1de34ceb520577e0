"""The metrics in the box; each is loaded through its entry point, like anyone else's."""
