"""Where does the time go? Profiles a few training steps, prints the costliest operators and writes a trace.

    python /opt/examples/profiler.py FOLDER

Open the trace in chrome://tracing or ui.perfetto.dev, or `tensorboard --logdir FOLDER`.
"""

import os
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

folder = sys.argv[1] if len(sys.argv) > 1 else "profile"
device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs, targets = torch.randn(256, 512, device=device), torch.randint(10, (256,), device=device)


def write(profiler):
    os.makedirs(folder, exist_ok=True)
    profiler.export_chrome_trace(os.path.join(folder, "training.pt.trace.json"))


activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device == "cuda")
# The first steps load libraries and choose kernels: they are left out.
with profile(activities=activities, schedule=schedule(wait=1, warmup=1, active=3), on_trace_ready=write) as profiler:
    for _ in range(5):
        with record_function("training step"):
            loss = torch.nn.functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        profiler.step()
print(profiler.key_averages().table(sort_by=f"self_{device}_time_total", row_limit=10))
