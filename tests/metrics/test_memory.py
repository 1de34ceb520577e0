"""Scoring a 4K frame takes little more memory than the two pictures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

MEASURED = """
import ctypes, json
import cv2, numpy as np
from convergebench.metric import Picture, StepView
from convergebench.metrics.pixel import psnr
from convergebench.metrics.ssim import ssim, ssim_rgb, ssim_uniform

cv2.setNumThreads(2)

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024

def now():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20

def forget():
    getattr(ctypes.CDLL(None), "malloc_trim", int)(0)  # freed is free
    open("/proc/self/clear_refs", "w").write("5")

def picture(seed):
    rows = np.random.default_rng(seed).integers(0, 256, (64, 5632, 3), dtype=np.uint8)
    return np.tile(rows, (48, 1, 1))

def warm(side):
    small = Picture(np.zeros((side, side, 3), np.uint8))
    for metric in (psnr, ssim, ssim_rgb, ssim_uniform):
        metric().score([StepView(small, small, np.ones((side, side), bool))])

warm(64)
one, other = picture(1), picture(2)
mask = np.zeros(one.shape[:2], bool)
mask[1000:2000] = True
used = {}
for metric in (psnr, ssim, ssim_rgb, ssim_uniform):
    for where in (None, mask):
        forget()
        before = now()
        view = StepView(Picture(other), Picture(one), where)
        metric().score([view])
        name = metric().spec.name + ("" if where is None else ", region")
        used[name] = round(peak() - before, 1)
        del view
print(json.dumps(used))
"""

# Megabytes above the two pictures of 5632×3072. Two threads' tiles take about 16; the luma form
# keeps two planes (33); a region keeps a float32 map (66) and a copy of the mask (17).
LIMITS = {
    "psnr": 10,
    "psnr, region": 25,
    "ssim": 90,
    "ssim, region": 180,
    "ssim-rgb": 50,
    "ssim-rgb, region": 140,
    "ssim-uniform": 50,
    "ssim-uniform, region": 140,
}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads Linux's counters")
def test_peak_memory_of_a_4k_pair() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURED], capture_output=True, text=True, check=True, timeout=240
    )
    used = json.loads(done.stdout)
    assert set(used) == set(LIMITS)
    assert all(used[name] >= 0 for name in used)
    assert {name: mb for name, mb in used.items() if mb > LIMITS[name]} == {}
