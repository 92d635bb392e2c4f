"""Programs that a check starts: they end with it, and what they said last is the reason when they fail."""

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
import uuid

from runner import Failed

MARK = "SMOKE_SERVICE"
# What is asked here is always on this machine, whatever proxy the environment names.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def run(*command, timeout=60, **options):
    """What the program printed, on stdout and stderr together; fails unless it ends with 0 in time."""
    name = os.path.basename(command[0])
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", timeout=timeout, **options,
        )  # fmt: skip
    except FileNotFoundError:
        raise Failed(f"{name} is not installed") from None
    except subprocess.TimeoutExpired:
        raise Failed(f"{name} was still running after {timeout} s") from None
    except OSError as error:
        raise Failed(f"{name} cannot be started: {error.strerror}") from None
    if done.returncode:
        raise Failed(f"{name} ended with status {done.returncode}: {tail(done.stdout)}")
    return done.stdout


@contextlib.contextmanager
def service(*command, log, **environment):
    """A program that runs in the background until the end of the block; gives the process."""
    with open(log, "w", encoding="utf-8") as output:
        try:
            process = subprocess.Popen(
                command,
                env={**os.environ, **environment, MARK: uuid.uuid4().hex},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            raise Failed(f"{os.path.basename(command[0])} cannot be started: {error.strerror}") from None
    process.log = log
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until(process, true, what, seconds=60):
    """What `true` returns, once that is something; fails when the process ends before, or the time."""
    deadline = time.monotonic() + seconds
    while not (result := true()):
        if process.poll() is not None:
            raise Failed(f"ended with status {process.returncode} before {what}: {said(process)}")
        if time.monotonic() > deadline:
            raise Failed(f"not {what} within {seconds} s: {said(process)}")
        time.sleep(0.1)
    return result


@contextlib.contextmanager
def ready(started):
    """The service, once it has said "ready"."""
    with started as process:
        wait_until(process, lambda: "ready" in said(process), "ready")
        yield process


def stop(process, seconds=15):
    """Ends the process as `docker stop` does; fails unless all that it started ends with it. Gives the seconds."""
    with open(f"/proc/{process.pid}/environ", "rb") as file:
        mark = next(entry for entry in file.read().split(b"\0") if entry.startswith(MARK.encode()))
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    while (left := marked(mark)) and time.monotonic() - started < seconds:
        process.poll()  # collects it
        time.sleep(0.05)
    if left:
        raise Failed(f"SIGTERM was sent {seconds} s ago and these still run: {', '.join(left)}")
    return round(time.monotonic() - started, 2)


def marked(mark):
    """The processes that were started with this in their environment, or by one that was."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{entry}/environ", "rb") as file:
            if mark in file.read().split(b"\0"):
                with open(f"/proc/{entry}/cmdline", encoding="utf-8", errors="replace") as line:
                    found.append(f"{entry} ({' '.join(line.read().split(chr(0)))[:80].strip()})")
    return found


def get(url, **headers):
    """Status and body of what is answered; None and why where nothing answers."""
    try:
        with OPENER.open(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
    except OSError as error:
        return None, str(error)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def said(process):
    with open(process.log, encoding="utf-8", errors="replace") as file:
        return tail(file.read())


def tail(text, lines=12):
    return "\n".join(text.strip().splitlines()[-lines:])[-3000:]
