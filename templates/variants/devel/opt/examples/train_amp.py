"""Trains a small network with automatic mixed precision: on a GPU in float16, without one in bfloat16 on the CPU.

    python /opt/examples/train_amp.py [EPOCHS]
"""

import sys

import torch
from torch.utils.data import DataLoader, TensorDataset


def data(samples=2048):
    """Points in 20 dimensions; which of the two classes depends on how far from the middle they are."""
    points = torch.randn(samples, 20, generator=torch.Generator().manual_seed(0))
    return TensorDataset(points, (points.norm(dim=1) > 4.4).long())


def network():
    return torch.nn.Sequential(torch.nn.Linear(20, 128), torch.nn.ReLU(), torch.nn.Linear(128, 2))


def train(epochs=5):
    """Gives the mean loss of each epoch."""
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    half = torch.float16 if device == "cuda" else torch.bfloat16
    model = network().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    # float16 loses small gradients: they are scaled up before `backward` and down again before the step. bfloat16
    # has the range of float32 and needs none of it.
    scaler = torch.amp.GradScaler(device, enabled=half is torch.float16)
    # Pinned memory is what a GPU can fetch from while the CPU goes on.
    loader = DataLoader(data(), batch_size=128, shuffle=True, pin_memory=device == "cuda")
    losses = []
    for epoch in range(epochs):
        total = 0.0
        for points, classes in loader:
            points, classes = points.to(device, non_blocking=True), classes.to(device, non_blocking=True)
            # Inside, each operation takes the precision that is good for it; the weights stay float32.
            with torch.autocast(device, dtype=half):
                loss = torch.nn.functional.cross_entropy(model(points), classes)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            total += loss.item() * len(points)
        losses.append(total / len(loader.dataset))
        print(f"epoch {epoch + 1}: loss {losses[-1]:.4f} ({device}, {half})", flush=True)
    return losses


if __name__ == "__main__":
    train(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
