"""The list of checks, in the order they run. A check has its function's name; its docstring says what it proves."""

import contents
import cpu
import debuggers
import extension
import gpu
import libraries
import notebooks
import plan
import profilers
import toolkit
import tracking

IMPORTS = cpu.imports
GPU_VISIBLE = gpu.gpu_visible

GROUPS = {
    "cpu": (
        # First, and without torch: when the import fails, this one has already named every missing library.
        libraries.libraries_resolve,
        cpu.imports,
        plan.cuda_build,
        plan.as_planned,
        libraries.libraries_once,
        cpu.cudnn_loads,
        cpu.torchvision_operators,
        cpu.matmul_backward,
        cpu.compile_cpu,
        cpu.dataloader_workers,
    ),
    "gpu": (
        gpu.gpu_visible,
        gpu.gpu_architecture,
        gpu.gpu_matmul,
        gpu.gpu_convolution,
        gpu.gpu_training,
        gpu.gpu_memory,
        gpu.gpu_dataloader,
        gpu.gpu_compile,
        gpu.gpu_all_reduce,
    ),
    # From here on: what a plan asks for, since not every image is to hold it.
    "absent": (contents.programs_absent, contents.nothing_left_over),
    "programs": (contents.programs_start,),
    "toolkit": (toolkit.toolkit_version, toolkit.toolkit_complete, toolkit.driver_from_outside),
    "extension": (extension.extension_builds, extension.extension_on_gpu),
    "jupyter": (notebooks.jupyter_serves, notebooks.jupyter_kernel),
    "debugging": (
        debuggers.py_spy_stack,
        debuggers.gdb_stack,
        debuggers.debugpy_listens,
        profilers.memray_flame_graph,
        profilers.profiler_trace,
        profilers.tensorboard_serves,
    ),
    "tracking": (tracking.tracking_server, tracking.tracking_databases, tracking.tracking_s3),
}
ALWAYS = {"cpu", "gpu"}


def name(check):
    return check.__name__.replace("_", "-")


def group(check):
    return next(group for group, members in GROUPS.items() if check in members)


def names():
    """All that --only takes."""
    return {*GROUPS, *(name(check) for members in GROUPS.values() for check in members)}


def planned(expected):
    """The groups that this plan asks for."""
    expected = expected or {}
    return {*(expected.get("smoke") or ()), *(key for key in ("absent", "programs") if expected.get(key))}


def select(only=None, planned=()):
    """All checks of this plan, or those asked for by name or group together with the ones they rest on."""

    def wanted(check):
        return name(check) in only or group(check) in only if only else group(check) in ALWAYS | {*planned}

    chosen = [check for members in GROUPS.values() for check in members if wanted(check)]
    needs = {IMPORTS} | ({GPU_VISIBLE} if any(group(check) == "gpu" for check in chosen) else set())
    return [check for members in GROUPS.values() for check in members if check in chosen or check in needs]


def listing():
    rows = ((group(check), name(check), check.__doc__.splitlines()[0]) for check in select(names()))
    return "\n".join(f"{in_group:<10} {called:<22} {proves}" for in_group, called, proves in rows)


def preload():
    """Imports torch here, so that each check inherits it instead of spending seconds on it.

    Only the import: not one tensor is made and CUDA is not touched, for neither OpenMP's threads nor a CUDA context
    survive a fork.
    """
    import torch  # noqa: F401
    import torchvision  # noqa: F401
