"""Trains one network in several processes, each with its part of the data: NCCL on GPUs, gloo without.

    torchrun --standalone --nproc-per-node gpu /opt/examples/train_ddp.py     # one process for each GPU
    torchrun --standalone --nproc-per-node 2 /opt/examples/train_ddp.py       # two processes, on the CPU too

A container without a network does not know its own name: `docker run --network none --hostname here --add-host
here:127.0.0.1` tells it.
"""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from train_amp import data, network


def main():
    # torchrun tells every process who it is.
    rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    # A GPU each, or the CPU for all: two processes must not share a GPU, NCCL refuses that.
    gpus = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    device = torch.device("cuda", local) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if gpus else "gloo")
    torch.manual_seed(0)
    # Every process starts from the weights of the first, and `backward` averages the gradients over all of them.
    model = DistributedDataParallel(network().to(device), device_ids=[local] if gpus else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    samples = data()
    sampler = DistributedSampler(samples)
    loader = DataLoader(samples, batch_size=64, sampler=sampler)
    for epoch in range(5):
        sampler.set_epoch(epoch)  # otherwise every epoch has the same order
        total = torch.zeros((), device=device)
        for points, classes in loader:
            loss = torch.nn.functional.cross_entropy(model(points.to(device)), classes.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)  # the sum of what all have
        if rank == 0:
            mean = total.item() / len(loader) / dist.get_world_size()
            print(f"epoch {epoch + 1}: loss {mean:.4f} ({dist.get_world_size()} × {device.type}, {dist.get_backend()})")
    # All hold the same network now: the first alone would save it.
    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    spread = weights.clone()
    dist.all_reduce(spread, op=dist.ReduceOp.MAX)
    if rank == 0:
        print(f"largest difference between processes: {(spread - weights).abs().max().item()}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
