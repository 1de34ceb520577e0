"""Editors of your own: a function, a server, a ComfyUI workflow, a folder of finished frames.

Nobody has to write a plug-in to measure what they have: `python:package.module:function`,
`http://host/edit`, `comfyui:workflow.json`, `folder:path`. Guide: docs/guides/your-editor.md.
"""
