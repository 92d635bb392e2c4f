"""The checks that need a GPU. Each runs in a fresh process, so CUDA starts anew in every one of them."""

import gc
import os

import doctor
import facts
from runner import Failed, Skipped


def gpu_visible(context):
    """CUDA starts, and its devices and the driver name themselves"""
    reason = facts.no_gpu()
    if reason:
        if context.require_gpu or facts.attached():
            reason = cause(context, reason)
        raise (Failed if context.require_gpu else Skipped)(reason)
    context.detail["devices"] = facts.devices()


def cause(context, reason):
    """Doctor's verdict where it has one; the record gets all of it."""
    floor = (context.expected or {}).get("driver_floor")
    finding = doctor.diagnose(error=reason, floor=floor, nvml=doctor.nvml())
    if not finding:
        return reason
    context.detail["doctor"] = finding
    return f"{finding['verdict']}: {finding['cause']}; {finding['cure']}"


def gpu_architecture(context):
    """this build of torch holds code that each device can run"""
    built, wrong = context.found["arch_list"], []
    for device in facts.devices():
        key = f"cuda:{device['index']}"
        context.detail[key] = runs = code_for(device["capability"], built)
        if runs is None:
            verdict = doctor.without_code(device["capability"], built)
            wrong.append(f"{verdict}: {key} {device['name']} has {device['capability']}")
    if wrong:
        raise Failed(f"{', '.join(wrong)}; this torch is built for {' '.join(built) or 'nothing'}")


def code_for(capability, built):
    """What of `built` a device of this capability runs, the closest first, or None.

    sm_86 is machine code: it runs on its own major version from its own minor version on. sm_90a runs on 9.0 alone.
    sm_100f runs within its family, which is taken for the major version. compute_90 is PTX, which the driver translates
    for everything that is not older.
    """
    device = tuple(map(int, capability.split(".")))
    usable = []
    for entry in built:
        kind, _, number = entry.partition("_")
        digits = number.rstrip("af")
        code = (int(digits[:-1]), int(digits[-1]))
        binary = kind == "sm" and code[0] == device[0] and code <= device
        if entry.endswith("a"):
            binary = kind == "sm" and code == device
        if binary or (kind == "compute" and code <= device and not entry.endswith(("a", "f"))):
            usable.append((binary, code, entry))
    return max(usable)[2] if usable else None


def gpu_matmul(context):
    """matrix products in fp32, fp16 and bf16 agree with the CPU, on every device"""
    import torch
    import work

    wrong = []
    for device in every_device():
        context.detail[str(device)] = notes = {}
        for dtype in work.TOLERANCES:
            name = str(dtype).removeprefix("torch.")
            if dtype == torch.bfloat16 and torch.cuda.get_device_capability(device) < (8, 0):
                notes[name] = "not in this hardware"
                continue
            notes[name] = work.matmul(device, dtype)
            try:
                work.judge(f"{device} {name}", notes[name])
            except Failed as why:  # the other devices and types are worth knowing too
                wrong.append(str(why))
    if wrong:
        raise Failed("; ".join(wrong))


def gpu_convolution(context):
    """a convolution by cuDNN and its gradients agree with the CPU"""
    import work

    for name, error in work.convolution(first_device()).items():
        # Wider than for a matrix product: cuDNN may use Winograd's algorithm, which trades digits for speed.
        context.detail[name] = {"error": error, "tolerance": 1e-4}
    for name, note in context.detail.items():
        work.judge(name, note)


def gpu_training(context):
    """training in mixed precision (autocast, GradScaler) lowers the loss"""
    import work

    first, last = work.train(first_device())
    context.detail.update(first_loss=first, last_loss=last)
    if not last < first / 2:
        raise Failed(f"the loss went from {first:.3g} to {last:.3g}; less than half was expected")


def gpu_memory(context):
    """what a training run took is given back, to the allocator and to the device"""
    import torch
    import work

    device = first_device()

    def settle():
        work.train(device)
        gc.collect()
        torch.cuda.synchronize(device)
        peak = torch.cuda.max_memory_allocated(device)
        torch.cuda.empty_cache()
        return torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device), peak

    # cuBLAS keeps a workspace from its first use on, so memory after the first round is the level to return to.
    before, after = settle(), settle()
    for name, values in zip(("allocated", "reserved", "peak"), zip(before, after)):
        context.detail[name] = list(values)
    if after[0] > before[0]:
        raise Failed(f"{after[0] - before[0]} bytes are still allocated after a second, equal round")
    if after[1] > before[1]:
        raise Failed(f"{after[1] - before[1]} bytes more stay reserved after empty_cache() of a second, equal round")


def gpu_dataloader(context):
    """a DataLoader brings every sample from two workers through pinned memory to the device"""
    import work

    context.detail.update(work.load(first_device()))


def gpu_compile(context):
    """torch.compile works on the GPU: Triton, the assembler and a C compiler are here"""
    import torch
    import work

    device = first_device()
    if torch.cuda.get_device_capability(device) < (7, 0):
        raise Skipped("Triton needs compute capability 7.0")
    context.detail.update(work.compiled(device))
    work.judge("compiled against eager", context.detail)


def gpu_all_reduce(context):
    """NCCL adds up across all devices"""
    import work

    devices = [str(device) for device in every_device()]
    if len(devices) < 2:
        raise Skipped("one GPU is visible, NCCL needs two")
    os.environ.setdefault("NCCL_DEBUG", "WARN")  # its exceptions say little, its warnings name the cause
    work.all_reduce(devices, context.scratch)
    context.detail["devices"] = len(devices)


def every_device():
    import torch

    return [torch.device("cuda", index) for index in range(torch.cuda.device_count())]


def first_device():
    return every_device()[0]
