"""Compares what was found with what was planned."""

import platform

from runner import Failed, Skipped

# These fields of the plan say what to prove, not what to find; checks of their own read them.
PROOFS = ("smoke", "absent", "programs", "driver_floor")


def cuda_build(context):
    """torch is a CUDA build, torchvision and torchaudio are of the same one, and nvcc, where installed, fits it"""
    found = context.found
    if not found["cuda"]:
        raise Failed(f"torch {found['torch']} is a CPU build: torch.version.cuda is empty")
    suffixes = {name: suffix(found[name]) for name in ("torch", "torchvision", "torchaudio") if suffix(found[name])}
    context.detail.update(suffixes)
    if len(set(suffixes.values())) > 1:
        raise Failed("built for different CUDA versions: " + ", ".join(f"{name} {found[name]}" for name in suffixes))
    if found["nvcc"] and minor(found["nvcc"]) != found["cuda"]:
        raise Failed(f"nvcc is {found['nvcc']}, torch was built with CUDA {found['cuda']}")


def as_planned(context):
    """versions, CUDA build, cuDNN and GPU architectures are the planned ones"""
    if context.expected is None:
        raise Skipped("no plan to compare with (expect.json, --expect)")
    compared, wrong = compare(context.expected, context.found)
    context.detail["compared"] = compared
    if wrong:
        raise Failed("; ".join(wrong))
    if not compared:
        raise Failed("the plan names nothing that could be compared")


def compare(expected, found):
    """The fields compared, and one line for each that is not as planned. A field left out or null was not planned."""
    found = {**found, "cuda_build": suffix(found["torch"])}
    if isinstance(expected.get("arch_list"), dict):  # by platform
        expected = {**expected, "arch_list": expected["arch_list"].get(platform.machine())}
    compared, wrong = [], []
    for field, planned in expected.items():
        if planned is None or field in PROOFS:
            continue
        if field == "cuda_build" and found[field] is None:  # not every build states a suffix
            continue
        compared.append(field)
        if field not in found:
            wrong.append(f"{field}: planned {planned}, but this test knows no such field")
        elif found[field] is None or not same(field, planned, found[field]):
            wrong.append(f"{field}: planned {shown(planned)}, found {shown(found[field])}")
    return compared, wrong


def same(field, planned, found):
    if field == "python":
        return minor(found) == minor(planned)
    if field in ("torch", "torchvision", "torchaudio"):
        return found.partition("+")[0] == planned  # what follows the plus is compared as cuda_build
    if field == "arch_list":
        return sorted(found) == sorted(planned)
    return found == planned


def shown(value):
    return " ".join(value) if isinstance(value, list) else "none" if value is None else value


def suffix(version):
    """cu132 of 2.15.0+cu132; None where there is none."""
    return (version or "").partition("+")[2] or None


def minor(version):
    return ".".join(version.split(".")[:2])
