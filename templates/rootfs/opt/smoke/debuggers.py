"""Debuggers, each looking into a Python process that uses torch and is running."""

import json
import os
import re
import socket
import sys

import processes
from runner import Failed, Skipped

# prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY): elsewhere than in a test, a debugger is the parent or has the capability.
# reduce() is C and calls Python: two interpreter loops lie on the stack.
TARGET = """
import ctypes, functools, time, torch
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)
def inner(tensor):
    print("ready", flush=True)
    while True:
        time.sleep(0.1)
def outer(tensor):
    functools.reduce(lambda a, b: inner(b), [tensor, tensor])
outer(torch.ones(2))
"""


def py_spy_stack(context):
    """py-spy shows the Python stack of a running process"""
    with target(context) as process:
        text = processes.run("py-spy", "dump", "--pid", str(process.pid))
    frames = re.findall(r"^\s+(\S+) \((?:.*/)?target\.py:(\d+)\)$", text, re.MULTILINE)
    context.detail["frames"] = frames
    compare([name.rpartition(".")[2] for name, _ in frames], "py-spy", text)


def gdb_stack(context):
    """gdb shows the Python stack of a running process (py-bt), and the C library's and Python's own source lines"""
    with target(context) as process:
        text = processes.run(
            "gdb", "--batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-solib-add off",
            "-p", str(process.pid), "-ex", "sharedlibrary libc.so", "-ex", "py-bt",
            "-ex", "echo native\\n", "-ex", "bt",
        )  # fmt: skip
    python, _, native = text.partition("native\n")
    frames = re.findall(r'^  File ".*/target\.py", line (\d+), in (\S+)$', python, re.MULTILINE)
    # "in __GI___clock_nanosleep (clock_id=...) at ../sysdeps/unix/sysv/linux/clock_nanosleep.c:48"
    sleeping = re.findall(r"^#\d+ .*\b(\w*clock_nanosleep\w*) \(.*\) at \S+\.c:\d+", native, re.MULTILINE)
    interpreter = re.findall(r"^#\d+ .*\b(_PyEval_EvalFrameDefault) \(.*\) at \S+:\d+", native, re.MULTILINE)
    context.detail.update(python=frames, c_library=sleeping, interpreter=len(interpreter))
    compare([name for _, name in frames], "py-bt", python)
    if not sleeping:
        raise Failed(f"gdb knows no source lines of the C library: {processes.tail(native, 30)}")
    if len(interpreter) < 2:
        raise Failed(f"gdb knows no source lines of the interpreter: {processes.tail(native, 30)}")


def debugpy_listens(context):
    """debugpy listens in a process that uses torch, and speaks the debug adapter protocol"""
    port = processes.free_port()
    script = f"import debugpy, torch; debugpy.listen(('127.0.0.1', {port})); debugpy.wait_for_client()"
    with processes.service(sys.executable, "-c", script, log=f"{context.scratch}/debugpy.log") as process:
        connection = processes.wait_until(process, lambda: connect(port), "listening")
        with connection, connection.makefile("rwb") as stream:
            request = {"seq": 1, "type": "request", "command": "initialize", "arguments": {"adapterID": "smoke"}}
            body = json.dumps(request).encode()
            stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            stream.flush()
            while True:  # events come before the answer
                size = int(stream.readline().split(b":")[1])
                stream.readline()
                message = json.loads(stream.read(size))
                if message["type"] == "response":
                    break
    context.detail.update(success=message["success"], abilities=sum(map(bool, message.get("body", {}).values())))
    if not message["success"]:
        raise Failed(f"debugpy refused: {message.get('message')}")


def target(context):
    """The process to look into, once it is where it stays."""
    scope = "/proc/sys/kernel/yama/ptrace_scope"
    if os.path.exists(scope):
        with open(scope, encoding="ascii") as file:
            context.detail["ptrace_scope"] = int(file.read())
        if context.detail["ptrace_scope"] > 1:
            raise Skipped("this host's kernel lets nobody look into a process (kernel.yama.ptrace_scope is above 1)")
    path = os.path.join(context.scratch, "target.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(TARGET)
    return processes.ready(processes.service(sys.executable, path, log=f"{path}.log"))


def compare(names, program, text):
    if names != ["inner", "<lambda>", "outer", "<module>"]:
        raise Failed(f"{program} saw {names}: {processes.tail(text, 30)}")


def connect(port):
    try:
        return socket.create_connection(("127.0.0.1", port), timeout=30)
    except OSError:
        return None
