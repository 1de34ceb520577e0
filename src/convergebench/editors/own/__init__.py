"""Editors of the user's own: a function, a server, a ComfyUI workflow, a folder of frames."""
