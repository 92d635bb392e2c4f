"""What is read out of the environment and the machine. Nothing here judges."""

import contextlib
import ctypes
import importlib
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess


def found():
    import torch

    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "torchvision": version("torchvision"),
        "torchaudio": version("torchaudio"),
        "triton": version("triton"),
        "cuda": torch.version.cuda,
        "cudnn": cudnn(),
        "nccl": nccl(),
        "arch_list": arch_list(),
        "nvcc": nvcc(),
        "git_version": torch.version.git_version,
        "heaviest": heaviest(),
    }


def version(module):
    """The module's own word, with its local suffix, which wheel metadata may lack; None without the module."""
    with contextlib.suppress(Exception):  # a module may break in many ways; the check of the imports tells how
        return str(importlib.import_module(module).__version__)


def cudnn():
    """The version of the library that is loaded, as text: cuDNN packs 9.26.0 into 92600, and packed 8.9.2 into 8902."""
    import torch

    with contextlib.suppress(RuntimeError):  # it refuses to name an incompatible one; a check of its own tells why
        number = torch.backends.cudnn.version()
        if number:
            major, rest = divmod(number, 10000 if number >= 90000 else 1000)
            return f"{major}.{rest // 100}.{rest % 100}"


def nccl():
    import torch

    with contextlib.suppress(AttributeError):  # a build without NCCL
        return ".".join(map(str, torch.cuda.nccl.version()))


def arch_list():
    """The GPU architectures compiled in. torch.cuda.get_arch_list() of older releases hides them without a driver."""
    import torch

    return (getattr(torch._C, "_cuda_getArchFlags", str)() or "").split()


def nvcc():
    """The full version of the compiler, "13.2.78", or why it does not tell; None where it is not installed."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    program = shutil.which("nvcc") or shutil.which("nvcc", path=os.path.join(home, "bin"))
    if not program:
        return None
    try:
        text = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout
        return re.search(r"\bV([\d.]+)", text)[1]
    except (OSError, subprocess.SubprocessError, TypeError) as error:
        return f"not usable ({error})"


def heaviest(count=12):
    """The packages that weigh most, each with its bytes: Python's by their own lists of files, Debian's by dpkg's word."""
    bytes_of = {
        dist.name: sum(file.size or 0 for file in dist.files or []) for dist in importlib.metadata.distributions()
    }
    with contextlib.suppress(OSError), open("/var/lib/dpkg/status", encoding="utf-8") as status:
        for stanza in status.read().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in stanza.splitlines() if re.match(r"[A-Z][\w-]*: ", line))
            if fields.get("Status", "").endswith(" installed"):
                bytes_of[fields["Package"] + " (Debian)"] = 1024 * int(fields.get("Installed-Size", 0))
    return sorted(bytes_of.items(), key=lambda item: -item[1])[:count]


def attached():
    """The devices by which a GPU that was asked for is reached."""
    return [path for path in ("/dev/nvidiactl", "/dev/dxg") if os.path.exists(path)]


def no_gpu():
    """Why no GPU can be used, or None when one can. Where one was attached, CUDA's own error tells why.

    NVIDIA_VISIBLE_DEVICES says nothing: the image sets it for everyone, so that a runtime that has a GPU attaches it.
    """
    import torch

    if torch.cuda.is_available():
        return None
    asked = attached()
    if not asked:
        return "no GPU is visible here"
    try:
        torch.cuda.init()
        error = "torch.cuda.is_available() is False, and torch.cuda.init() does not say why"
    except Exception as why:
        error = " ".join(str(why).split())
    return f"{' and '.join(asked)}, yet CUDA is not usable: {error}"


def devices():
    import torch

    driver = driver_version()
    properties = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    return [
        {
            "index": index,
            "name": device.name,
            "capability": f"{device.major}.{device.minor}",
            "memory_bytes": device.total_memory,
            "driver": driver,
        }
        for index, device in enumerate(properties)
    ]


def driver_version():
    """From NVML; where the container did not get that library (capability `utility`), from the kernel module."""
    with contextlib.suppress(OSError):
        nvml, text = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.create_string_buffer(96)
        if nvml.nvmlInit_v2() == 0 and nvml.nvmlSystemGetDriverVersion(text, len(text)) == 0:
            return text.value.decode()
    with contextlib.suppress(OSError), open("/proc/driver/nvidia/version", encoding="utf-8") as file:
        match = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", file.readline())
        return match and match[1]
