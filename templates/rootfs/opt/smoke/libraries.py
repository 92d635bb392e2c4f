"""What the dynamic loader will find, and what it has found."""

import ctypes
import glob
import importlib.util
import os
import re
from collections import deque

import elf
from runner import Failed

# These come with the driver, mounted into the container from the host. An image must not hold them.
DRIVER = re.compile(r"lib(cuda|nvcuvid|nvidia-[\w-]+)\.so\b")
# The libraries that CUDA's wheels bring.
CUDA = re.compile(
    r"lib(cublas|cublasLt|cudart|cudnn\w*|cufft|cufile|cupti|curand|cusolver|cusparse|cusparseLt|nccl|nvJitLink|nvrtc|"
    r"nvshmem\w*)\.so\b"
)


def libraries_resolve(context):
    """every library that torch and cuDNN link against is found and is one, the driver's excepted"""
    folder = os.path.dirname(importlib.util.find_spec("torch").origin)
    # The loader takes a library that is already there for any later request of the same name: hence one walk for all.
    walk = Walk()
    walk.follow(sorted(glob.glob(f"{folder}/lib/*.so*") + glob.glob(f"{folder}/_C*.so")))
    # cuDNN opens its parts by name while it computes, so nothing links to them and their lack would show late.
    parts = glob.glob(os.path.join(os.path.dirname(walk.places.get("libcudnn.so.9", "")), "libcudnn_*.so*"))
    walk.follow(sorted(parts))
    context.detail.update(libraries=len(walk.places), driver=sorted(walk.driver))
    if walk.problems:
        raise Failed("; ".join(sorted(walk.problems)))
    if "libtorch_cuda.so" not in walk.places:
        raise Failed(f"{folder}/lib holds no libtorch_cuda.so: this is a CPU build of torch")


class Walk:
    """Follows libraries as the loader would."""

    def __init__(self):
        self.machine = elf.read("/proc/self/exe").machine
        self.places, self.driver, self.problems = {}, set(), set()

    def follow(self, paths):
        queue = deque((path, []) for path in paths)
        self.places.update((os.path.basename(path), path) for path in paths)
        while queue:
            path, inherited = queue.popleft()
            try:
                dynamic = elf.read(path)
            except (OSError, ValueError) as error:
                self.problems.add(str(error))
                continue
            if dynamic.machine != self.machine:
                self.problems.add(f"{path} is for another machine (ELF machine {dynamic.machine})")
            own = dynamic.rpath + inherited
            for name in dynamic.needed:
                if DRIVER.match(name):
                    self.driver.add(name)
                elif name not in self.places:
                    self.places[name] = place = self.find(name, dynamic.runpath or own)
                    if place is None:
                        self.problems.add(f"{name} is not found, which {path} needs")
                    elif os.path.isabs(place):
                        queue.append((place, own))

    def find(self, name, folders):
        for folder in folders:
            place = os.path.normpath(os.path.join(folder, name))
            if os.path.exists(place):
                return place
        # Not beside the wheels, so the system's: only the loader itself knows its cache and its folders.
        try:
            ctypes.CDLL(name)
            return name
        except OSError:
            return None


def libraries_once(context):
    """after importing torch, CUDA's libraries are mapped from this environment only, each of them once"""
    import torch

    torch.backends.cudnn.version()
    mapped = {}
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[-1].strip()
            if CUDA.match(os.path.basename(path)):
                # Without what follows ".so": two majors of one library are two copies as well.
                mapped.setdefault(os.path.basename(path).split(".so")[0], set()).add(path)
    site = os.path.realpath(os.path.dirname(os.path.dirname(torch.__file__)))
    context.detail.update(site=site, mapped=sorted(path for paths in mapped.values() for path in paths))
    strangers = [path for path in context.detail["mapped"] if not path.startswith(site + os.sep)]
    twice = [" and ".join(sorted(paths)) for paths in mapped.values() if len(paths) > 1]
    missing = {"libcublas", "libcudnn"} - mapped.keys()
    if strangers:
        raise Failed(f"from outside {site}: {', '.join(strangers)}")
    if twice:
        raise Failed(f"more than one copy: {'; '.join(twice)}")
    if missing:
        raise Failed(f"torch was imported without {' and '.join(sorted(missing))}")
