"""Profilers, each on a small program that uses torch."""

import glob
import json
import os
import sys

import processes
from runner import Failed

EXAMPLE = "/opt/examples/profiler.py"
HUNGRY = """
import torch
def hungry():
    return [torch.ones(1 << 20) for _ in range(8)]
kept = hungry()
"""


def memray_flame_graph(context):
    """memray follows the memory of a program, and draws a flame graph in which its function is"""
    script, log, page = (os.path.join(context.scratch, name) for name in ("hungry.py", "hungry.bin", "hungry.html"))
    with open(script, "w", encoding="utf-8") as file:
        file.write(HUNGRY)
    processes.run("memray", "run", "--output", log, script)
    processes.run("memray", "flamegraph", "--output", page, log)
    with open(page, encoding="utf-8") as file:
        text = file.read()
    context.detail.update(log_bytes=os.path.getsize(log), page_bytes=len(text))
    if "hungry.py" not in text or '"hungry"' not in text or len(text) < 10000:
        raise Failed(f"the flame graph has {len(text)} characters and does not show the function that took the memory")


def profiler_trace(context):
    """the example of torch.profiler that is in this image writes a trace in which its operators are"""
    folder = os.path.join(context.scratch, "trace")
    context.detail["said"] = processes.tail(processes.run(sys.executable, EXAMPLE, folder), 3)
    traces = glob.glob(f"{folder}/*.json")
    if not traces:
        raise Failed(f"{EXAMPLE} left no trace in {folder}")
    with open(traces[0], encoding="utf-8") as file:
        names = {event.get("name") for event in json.load(file)["traceEvents"]}
    missing = {"aten::linear", "training step"} - names
    context.detail.update(bytes=os.path.getsize(traces[0]), names=len(names))
    if missing:
        raise Failed(f"not in the trace: {', '.join(sorted(missing))}")


def tensorboard_serves(context):
    """TensorBoard shows a number that torch wrote for it"""
    from torch.utils.tensorboard import SummaryWriter

    folder = os.path.join(context.scratch, "board")
    with SummaryWriter(os.path.join(folder, "a run")) as writer:
        writer.add_scalar("loss", 0.25, 1)
    port = processes.free_port()
    command = ("tensorboard", "--logdir", folder, "--host", "127.0.0.1", "--port", str(port))
    with processes.service(*command, log=f"{context.scratch}/tensorboard.log") as server:
        url = f"http://127.0.0.1:{port}/data/plugin/scalars/scalars?run=a%20run&tag=loss"
        processes.wait_until(server, lambda: processes.get(url)[0] == 200, "showing the number")
        context.detail["answer"] = answer = json.loads(processes.get(url)[1])
    if [point[1:] for point in answer] != [[1, 0.25]]:
        raise Failed(f"0.25 at step 1 was written, TensorBoard shows {answer}")
