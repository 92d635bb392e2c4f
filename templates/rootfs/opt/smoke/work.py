"""Work with a known result, on whichever device is named: what the CPU and the GPU checks share."""

import datetime
import glob
import math
import os
import tempfile
import time

import torch
from runner import Failed
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, get_worker_info

# Rounding a result to 24, 11 or 8 bits costs up to 6e-8, 5e-4 or 4e-3; the rest is room for another order of adding.
# TF32 keeps 11 bits and would miss the first by far: it cannot pass for fp32.
TOLERANCES = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}


def deviation(result, reference):
    """The largest error as a share of the largest value: element by element, a good result near zero would look bad."""
    reference = reference.detach().cpu().double()
    return ((result.detach().cpu().double() - reference).abs().max() / reference.abs().max()).item()


def judge(name, note):
    """Fails when the error noted is above the tolerance noted. Asked this way round, as NaN is not below anything."""
    if not note["error"] <= note["tolerance"]:
        raise Failed(f"{name}: error {note['error']:.2g}, tolerated {note['tolerance']:.2g}")


def wait_for(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def matmul(device, dtype, timed=4096):
    """Multiplies on the device, compares with fp64 on the CPU; the speed is for people, and never judged."""
    torch.set_float32_matmul_precision("highest")  # an environment variable may have turned TF32 on
    torch.manual_seed(0)
    # Rounded first, so that the reference starts from the very same numbers. Odd sizes reach the edges of the tiles.
    left, right = torch.randn(769, 513).to(dtype), torch.randn(513, 1031).to(dtype)
    error = deviation(left.to(device) @ right.to(device), left.double() @ right.double())

    square = torch.randn(timed, timed, device=device, dtype=dtype)
    seconds = math.inf
    for _ in range(3):
        wait_for(device)
        started = time.perf_counter()
        square @ square
        wait_for(device)
        seconds = min(seconds, time.perf_counter() - started)
    return {"error": error, "tolerance": TOLERANCES[dtype], "gflops": round(2 * timed**3 / seconds / 1e9)}


def convolution(device):
    """Errors of a convolution and its two gradients, on the GPU by cuDNN and nothing else, against fp64 on the CPU."""
    torch.manual_seed(0)
    image, kernel = torch.randn(4, 16, 33, 33), torch.randn(32, 16, 3, 3)
    weights = torch.randn(4, 32, 33, 33)

    def through(operator, image, kernel, weights):
        image, kernel = image.requires_grad_(), kernel.requires_grad_()
        output = operator(image, kernel)
        (output * weights).sum().backward()
        return output, image.grad, kernel.grad

    def plain(image, kernel):
        return functional.conv2d(image, kernel, padding=1)

    def cudnn(image, kernel):
        # conv2d is free to choose another implementation. The arguments: padding, stride, dilation, groups, and
        # benchmark, deterministic and allow_tf32 switched off.
        return torch.cudnn_convolution(image, kernel, [1, 1], [1, 1], [1, 1], 1, False, False, False)

    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        operator = cudnn if device.type == "cuda" else plain
        results = through(operator, image.to(device, copy=True), kernel.to(device, copy=True), weights.to(device))
    references = through(plain, image.double(), kernel.double(), weights.double())
    return dict(zip(("output", "image_gradient", "kernel_gradient"), map(deviation, results, references)))


def train(device, steps=30):
    """A small network learns a fixed batch in mixed precision; returns its first and last loss."""
    torch.manual_seed(0)
    inputs = torch.randn(256, 64, device=device)
    targets = inputs[:, :1] - inputs[:, 1:2]
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler(device.type)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype=torch.float16):
            loss = functional.mse_loss(model(inputs), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses[0], losses[-1]


class Numbered(Dataset):
    """Pictures that are filled with their own number and tell which worker made them."""

    def __len__(self):
        return 64

    def __getitem__(self, number):
        return torch.full((3, 32, 32), float(number)), number, get_worker_info().id


def load(device):
    """Takes each picture from two worker processes to the device, and fails unless every one arrives intact."""
    pinned = device.type == "cuda"
    seen, workers = [], set()
    for pictures, numbers, makers in DataLoader(Numbered(), 8, num_workers=2, pin_memory=pinned, timeout=60):
        if pictures.is_pinned() != pinned:
            raise Failed("pin_memory=True, yet the batch is not in pinned memory")
        pictures = pictures.to(device, non_blocking=True)
        if not (pictures == numbers.to(device).view(-1, 1, 1, 1)).all():
            raise Failed(f"a batch arrived damaged: pictures {numbers.tolist()}")
        seen += numbers.tolist()
        workers |= set(makers.tolist())
    if seen != list(range(64)) or workers != {0, 1}:
        raise Failed(f"64 pictures of workers 0 and 1 expected, got {len(seen)} of {sorted(workers)}")
    return {"samples": len(seen), "workers": len(workers)}


def compiled(device):
    """Compiles a small function with torch.compile; returns its deviation from eager and how many files that made."""
    folder = tempfile.gettempdir()
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        raise Failed(
            f"{folder} is mounted noexec, so nothing compiled there can be loaded; "
            "mount it with exec (docker run --tmpfs /tmp:exec) or point TMPDIR elsewhere"
        )

    def function(inputs, weights):
        return functional.gelu(inputs @ weights).softmax(dim=1).sum(dim=0)

    torch.manual_seed(0)
    inputs, weights = torch.randn(64, 32, device=device), torch.randn(32, 48, device=device)
    # Without fullgraph, what cannot be compiled would quietly run as eager.
    result = torch.compile(function, fullgraph=True)(inputs, weights)
    objects = [path for path in glob.glob(f"{folder}/**", recursive=True) if path.endswith((".so", ".cubin"))]
    return {"error": deviation(result, function(inputs, weights)), "tolerance": 1e-5, "objects": len(objects)}


def all_reduce(devices, folder):
    """Sums across the devices, one process for each, NCCL on GPUs; a wrong sum or a lost process raises."""
    # A file instead of a port: it needs no network, and cannot be taken by somebody else.
    torch.multiprocessing.spawn(_rank, (devices, os.path.join(folder, "rendezvous")), nprocs=len(devices))


def _rank(rank, devices, rendezvous):
    device, world = torch.device(devices[rank]), len(devices)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    torch.distributed.init_process_group(
        "nccl" if device.type == "cuda" else "gloo",
        init_method=f"file://{rendezvous}",
        rank=rank,
        world_size=world,
        timeout=datetime.timedelta(seconds=120),
    )
    for size in (1, 1 << 22):  # one that is all latency, one that is cut into pieces
        values = torch.full((size,), rank + 1.0, device=device)
        torch.distributed.all_reduce(values)
        if not (values == world * (world + 1) / 2).all():
            raise Failed(f"all-reduce of {size} numbers is wrong on {device}")
    torch.distributed.destroy_process_group()
