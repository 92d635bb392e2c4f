"""Why a GPU cannot be used, seen from inside: the verdicts of `cargo xtask doctor`, each with its numbers and a way out.

Facts come from below `root`, so that a recorded container can be judged as well as this one.
"""

import contextlib
import ctypes
import glob
import os
import re

# Where libcuda is looked for after LD_LIBRARY_PATH, in the order of the loader.
FOLDERS = ("usr/local/nvidia/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib/wsl/lib")
NVML_ERRORS = {4: "Insufficient Permissions", 9: "Driver Not Loaded", 18: "Driver/library version mismatch", 999: "Unknown Error"}


def diagnose(error="", floor=None, nvml=None, root="/", environ=os.environ):
    """The verdict, or None where the cause is none of those known here.

    `error` is CUDA's own, `floor` the lowest driver of this image, `nvml` what NVML says when it is started.
    """
    facts = Facts(error, floor, nvml, root, environ)
    findings = (judge(facts) for judge in (attached, lost, upgraded, compute, unified_memory, geforce, shadow, old))
    return next((finding for finding in findings if finding), None)


class Facts:
    def __init__(self, error, floor, nvml, root, environ):
        self.error, self.floor, self.nvml, self.root = error, floor, nvml or "", root
        self.wsl = self.exists("dev/dxg")
        self.attached = self.wsl or self.exists("dev/nvidiactl")
        self.module = self.driver()
        self.capabilities = environ.get("NVIDIA_DRIVER_CAPABILITIES", "")
        path = [folder.lstrip("/") for folder in environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
        self.folder, self.libcuda = next(filter(None, map(self.library, (*path, *FOLDERS))), (None, None))

    def exists(self, path):
        return os.path.exists(os.path.join(self.root, path))

    def driver(self):
        """The version of the kernel module, which containers see too."""
        with contextlib.suppress(OSError, AttributeError):
            with open(os.path.join(self.root, "proc/driver/nvidia/version"), encoding="utf-8") as file:
                return re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", file.readline())[1]

    def library(self, folder):
        """The folder with its libcuda's version, which its name tells ("" where not), or None where it has none."""
        there = os.path.join(self.root, folder)
        if os.path.lexists(os.path.join(there, "libcuda.so.1")):
            names = [os.path.realpath(os.path.join(there, "libcuda.so.1")), *sorted(glob.glob(f"{there}/libcuda.so.*.*"))]
            versions = (re.search(r"libcuda\.so\.(\d+\.[\d.]+)$", name) for name in names)
            return "/" + folder, next((match[1] for match in versions if match), "")


def finding(verdict, cause, cure, **evidence):
    return {"verdict": verdict, "cause": cause, "cure": cure, "evidence": evidence}


def attached(facts):
    if not facts.attached:
        return finding(
            "TOOLKIT_NOT_CONFIGURED",
            "no GPU is attached to this container: neither /dev/nvidiactl nor /dev/dxg is here",
            "start it with --gpus all, or by CDI with --device nvidia.com/gpu=all; on the host, `cargo xtask doctor` tells more",
        )


def lost(facts):
    if "Unknown Error" in facts.nvml:
        return finding(
            "GPU_LOST_CGROUP",
            f"NVML says `{facts.nvml}`: the container may not use its GPU any more, its cgroup was reloaded without it",
            "restart the container; `cargo xtask doctor --container NAME` on the host tells how it lasts",
            nvml=facts.nvml,
        )


def upgraded(facts):
    if "version mismatch" in facts.nvml:
        return finding(
            "DRIVER_UPGRADED_NEEDS_REBOOT",
            f"the driver's libraries are {facts.libcuda or 'of another version'}, the kernel module is {facts.module}",
            "reboot the host where its own nvidia-smi says the same; otherwise make the container anew",
            libraries=facts.libcuda,
            kernel_module=facts.module,
        )


def compute(facts):
    if facts.libcuda is not None:
        return None
    words = [word.strip() for word in facts.capabilities.split(",")]
    if facts.capabilities and not {"compute", "all"} & {*words}:
        return finding(
            "CAPABILITY_COMPUTE_MISSING",
            f"the driver capabilities are `{facts.capabilities}`, without compute: no libcuda is mounted",
            "start it with --env NVIDIA_DRIVER_CAPABILITIES=compute,utility",
            capabilities=facts.capabilities,
        )
    return finding(
        "TOOLKIT_NOT_CONFIGURED",
        "the GPU's devices are here and the driver's libcuda is not: they were passed without NVIDIA's toolkit",
        "attach the GPU with --gpus all, or by CDI with --device nvidia.com/gpu=all, not with --privileged or --device /dev/…",
    )


def unified_memory(facts):
    if not facts.wsl and not facts.exists("dev/nvidia-uvm"):
        return finding(
            "UVM_MISSING",
            "/dev/nvidiactl is here and /dev/nvidia-uvm is not: CUDA cannot start",
            "on the host: sudo modprobe nvidia-uvm && sudo nvidia-modprobe -u -c 0, then make the container anew",
        )


def geforce(facts):
    if "forward compatibility was attempted" in facts.error:
        return finding(
            "FORWARD_COMPAT_NOT_ON_GEFORCE",
            f"libcuda {facts.libcuda} of {facts.folder} is newer than driver {facts.module}, which this card does not offer",
            f"take {facts.folder} from LD_LIBRARY_PATH, and a release whose CUDA the driver runs: `cargo xtask doctor`",
            libcuda=facts.libcuda,
            driver=facts.module,
        )


def shadow(facts):
    if facts.module and facts.libcuda and numbers(facts.libcuda) < numbers(facts.module):
        return finding(
            "COMPAT_LIBCUDA_SHADOWS_DRIVER",
            f"libcuda {facts.libcuda} of {facts.folder} stands before that of driver {facts.module}",
            f"take {facts.folder} from LD_LIBRARY_PATH, or remove it from the image",
            libcuda=facts.libcuda,
            driver=facts.module,
            folder=facts.folder,
        )


def old(facts):
    if facts.module and facts.floor and numbers(facts.module) < numbers(facts.floor):
        return finding(
            "DRIVER_BELOW_IMAGE_REQUIREMENT",
            f"this image needs driver {facts.floor}, the host's is {facts.module}",
            "take a release whose CUDA the driver runs (`cargo xtask doctor` on the host names them), or upgrade the driver",
            needed_driver=facts.floor,
            driver=facts.module,
        )


def without_code(capability, built):
    """Which verdict it is that a device finds no code: it is newer than all of it, or older."""
    codes = [(int(number[:-1]), int(number[-1])) for number in re.findall(r"sm_(\d+)", " ".join(built))]
    newer = codes and tuple(map(int, capability.split("."))) > max(codes)
    return "GPU_TOO_NEW_FOR_IMAGE" if newer else "GPU_TOO_OLD_FOR_IMAGE"


def numbers(version):
    return tuple(map(int, version.split(".")))


def nvml():
    """What NVML says when it is started; None where all is well, or it is not here."""
    with contextlib.suppress(OSError):
        code = ctypes.CDLL("libnvidia-ml.so.1").nvmlInit_v2()
        return NVML_ERRORS.get(code, f"error {code}") if code else None
