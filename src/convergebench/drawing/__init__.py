"""Source images and objects drawn by our own code, with the same pixels on every machine."""

from convergebench.drawing.objects import OBJECTS, sprite
from convergebench.drawing.scenes import ANCHORS, SCENES, scene, scene_rows

__all__ = ["ANCHORS", "OBJECTS", "SCENES", "scene", "scene_rows", "sprite"]
