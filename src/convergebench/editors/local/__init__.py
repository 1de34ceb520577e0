"""Editors that compute on this machine: diffusion pipelines and small networks."""
