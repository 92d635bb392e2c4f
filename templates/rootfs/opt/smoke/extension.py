"""A CUDA extension, built as users build theirs: torch.utils.cpp_extension, nvcc, ninja and g++ together."""

import glob
import importlib.util
import inspect
import os
import re

import elf
import facts
import processes
from runner import Failed, Skipped

# The headers are those that most extensions include: all of torch's, which bring cuBLAS', cuSPARSE's and cuSOLVER's ...
HOST = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

void launch(const float* rows, float* sums, int count, cudaStream_t stream);

torch::Tensor sums(torch::Tensor rows) {
  TORCH_CHECK(rows.is_cuda() && rows.is_contiguous() && rows.dim() == 2 && rows.size(1) == 256, "256 columns on a GPU");
  auto result = torch::empty({rows.size(0)}, rows.options());
  launch(rows.data_ptr<float>(), result.data_ptr<float>(), rows.size(0), at::cuda::getCurrentCUDAStream());
  return result;
}
"""
# ... and CUB of CCCL.
DEVICE = r"""
#include <c10/cuda/CUDAException.h>
#include <cub/block/block_reduce.cuh>

__global__ void add(const float* rows, float* sums) {
  using Reduce = cub::BlockReduce<float, 256>;
  __shared__ typename Reduce::TempStorage storage;
  float sum = Reduce(storage).Sum(rows[blockIdx.x * 256 + threadIdx.x]);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

void launch(const float* rows, float* sums, int count, cudaStream_t stream) {
  add<<<count, 256, 0, stream>>>(rows, sums);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""


def extension_builds(context):
    """a CUDA extension compiles for two GPU architectures, links, holds code for both, and is imported"""
    import torch
    from torch.utils import cpp_extension

    low, high = architectures(context.found["arch_list"])
    # PTX of the lower one, so that the same file also runs on all that lies between.
    os.environ["TORCH_CUDA_ARCH_LIST"] = f"{low // 10}.{low % 10}+PTX;{high // 10}.{high % 10}"
    folder = os.path.join(context.scratch, "extension")
    os.mkdir(folder)
    # torch's own header in the device's code would prove nothing more and take a minute; not every torch can leave it out.
    quick = "no_implicit_headers" in inspect.signature(cpp_extension.load_inline).parameters
    module = cpp_extension.load_inline(
        "smoke_extension",
        cpp_sources=HOST,
        cuda_sources=DEVICE,
        functions="sums",
        build_directory=folder,
        **({"no_implicit_headers": True} if quick else {}),
    )
    code = elf.gpu_code(module.__file__)
    wanted = {f"sm_{low}", f"sm_{high}", f"compute_{low}"}
    context.detail.update(asked=os.environ["TORCH_CUDA_ARCH_LIST"], code=code, bytes=os.path.getsize(module.__file__))
    if set(code) != wanted:
        raise Failed(
            f"code for {' '.join(sorted(wanted))} was asked for, the extension holds {' '.join(code) or 'none'}"
        )
    try:
        module.sums(torch.zeros(1, 256))
    except RuntimeError as refused:
        if "256 columns on a GPU" in str(refused):
            return
    raise Failed("the extension was to refuse a tensor of the CPU, and did not")


def extension_on_gpu(context):
    """the extension's kernel adds up on the GPU what the CPU does"""
    import torch

    reason = facts.no_gpu()
    if reason:
        raise Skipped(reason)
    built = glob.glob(os.path.join(context.scratch, "extension", "*.so"))
    if not built:
        raise Failed("there is no extension to run; extension-builds makes it")
    spec = importlib.util.spec_from_file_location("smoke_extension", built[0])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows = torch.randint(-8, 9, (1000, 256)).float()  # small whole numbers: every sum is exact
    wrong = int((module.sums(rows.cuda()).cpu() != rows.sum(1)).sum())
    context.detail.update(
        rows=len(rows), wrong=wrong, capability=".".join(map(str, torch.cuda.get_device_capability()))
    )
    if wrong:
        raise Failed(f"{wrong} of {len(rows)} sums are wrong")


def architectures(built):
    """The oldest and the newest of torch's architectures that nvcc compiles for."""
    known = set(re.findall(r"\bcompute_(\d+)$", processes.run("nvcc", "--list-gpu-arch"), re.MULTILINE))
    both = sorted(int(number) for number in known & {entry.removeprefix("sm_") for entry in built})
    if len(both) < 2:
        raise Failed(f"torch is built for {' '.join(built)}; nvcc knows {' '.join(sorted(known, key=int))}")
    return both[0], both[-1]
