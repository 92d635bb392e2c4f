"""The CUDA toolkit: compiler, headers, and what an extension links with."""

import ctypes
import os
import shutil

import plan
from runner import Failed, Skipped

# What torch's own headers include, from the folder that $CUDA_HOME names.
HEADERS = (
    "cuda_runtime.h",
    "cuda_fp16.h",
    "cublas_v2.h",
    "cusparse.h",
    "cusolverDn.h",
    "nvrtc.h",
    "crt/host_defines.h",
)


def toolkit_version(context):
    """nvcc is of the CUDA version that torch was built with"""
    nvcc, cuda = context.found["nvcc"], context.found["cuda"]
    context.detail.update(nvcc=nvcc, cuda=cuda)
    if not nvcc:
        raise Failed("nvcc is not installed")
    if plan.minor(nvcc) != cuda:
        raise Failed(f"nvcc is {nvcc}, torch was built with CUDA {cuda}")


def toolkit_complete(context):
    """$CUDA_HOME is where torch and the shell find the toolkit, and compiler, headers and libraries are in it"""
    from torch.utils import cpp_extension

    home = os.environ.get("CUDA_HOME")
    if not home:
        raise Failed("CUDA_HOME is not set")
    nvcc = shutil.which("nvcc")
    context.detail.update(home=home, nvcc=nvcc, torch=cpp_extension.CUDA_HOME)
    wrong = []
    if cpp_extension.CUDA_HOME != home:
        wrong.append(f"torch takes CUDA_HOME for {cpp_extension.CUDA_HOME}")
    if not nvcc or not os.path.samefile(nvcc, os.path.join(home, "bin", "nvcc")):
        wrong.append(f"nvcc on PATH is {nvcc or 'missing'}, not the one in {home}/bin")
    for name in (*(f"include/{header}" for header in HEADERS), "lib64/libcudart.so"):
        if not os.path.exists(os.path.join(home, name)):
            wrong.append(f"{home}/{name} is missing")
    linked, loaded = os.path.realpath(f"{home}/lib64/libcudart.so"), mapped("libcudart.so")
    context.detail.update(linked=linked, loaded=loaded)
    if loaded and [linked] != loaded:
        wrong.append(f"extensions would link with {linked}, torch has loaded {' and '.join(loaded)}")
    if wrong:
        raise Failed("; ".join(wrong))


def driver_from_outside(context):
    """no driver library is in the image, nor a stub that would be taken for one: the host brings it"""
    if any(map(os.path.exists, ("/dev/nvidiactl", "/dev/dxg"))):
        raise Skipped("a GPU is attached, and its driver with it")
    for name in ("libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1"):
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        raise Failed(f"{' and '.join(mapped(name)) or name} is loaded here without any GPU")


def mapped(name):
    """The files of this name that are loaded into this process."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split(maxsplit=5)[-1].strip() for line in maps}
    return sorted(path for path in paths if os.path.basename(path).startswith(name))
