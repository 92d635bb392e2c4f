"""What an image must hold, and what it must not."""

import glob
import os
import re
import shutil
import site
import sys
from concurrent.futures import ThreadPoolExecutor

import processes
from runner import Failed, Skipped

# The wheels bring a few small ones that nvcc links device code with; a CUDA library of that kind has ten times as much.
ARCHIVE_LIMIT = 8 << 20


def programs_absent(context):
    """the programs that this image is to do without are in no folder where anybody would find them"""
    names = (context.expected or {}).get("absent")
    if not names:
        raise Skipped("the plan names no programs that must not be here")
    folders = {*os.get_exec_path(), "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"}
    folders |= {os.path.join(place, "bin") for place in [sys.prefix, *cuda_homes()]}
    paths = (os.path.join(folder, name) for name in names for folder in sorted(folders))
    found = [path for path in paths if os.path.lexists(path)]
    context.detail.update(programs=names, folders=sorted(folders))
    if found:
        raise Failed(f"in this image, which is to do without: {', '.join(found)}")


def nothing_left_over(context):
    """no libraries that only a linker could use, no caches of apt, pip or uv"""
    places = [os.path.join(place, "nvidia") for place in site.getsitepackages()] + cuda_homes()
    archives = {os.path.realpath(path) for place in places for path in glob.glob(f"{place}/**/*.a", recursive=True)}
    sizes = {path: os.path.getsize(path) for path in sorted(archives)}
    found = [f"{path} ({size >> 20} MiB)" for path, size in sizes.items() if size > ARCHIVE_LIMIT]
    # Not $HOME, which is the scratch folder by now.
    for pattern in ("/var/cache/apt/archives/*.deb", "/var/cache/apt/*.bin", "/var/lib/apt/lists/*Packages*"):
        found += glob.glob(pattern)
    for home in ("/root", *glob.glob("/home/*")):
        found += [path for name in ("pip", "uv") if os.path.exists(path := f"{home}/.cache/{name}")]
    context.detail.update(archives=len(archives), limit_bytes=ARCHIVE_LIMIT)
    if found:
        raise Failed(f"nobody needs in this image: {', '.join(found)}")


def programs_start(context):
    """every program that this image promises is on PATH and starts"""
    planned = (context.expected or {}).get("programs")
    if not planned:
        raise Skipped("the plan names no programs")
    if not isinstance(planned, dict):
        planned = dict.fromkeys(planned)

    def start(name, arguments):
        try:
            lines = processes.run(shutil.which(name) or name, *(arguments or ["--version"])).splitlines()
            return name, next((line for line in lines if re.search(r"\d\.\d", line)), ""), None
        except Failed as why:
            return name, None, str(why)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(start, planned, planned.values()))
    context.detail.update((name, said) for name, said, _ in results)
    problems = [why for _, _, why in results if why]
    if problems:
        raise Failed("; ".join(problems))


def cuda_homes():
    return sorted({*filter(None, [os.environ.get("CUDA_HOME")]), *glob.glob("/usr/local/cuda*")})
