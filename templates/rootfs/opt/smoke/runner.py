"""Runs one check in a process of its own.

A crash or a hang then takes that check only, and a sticky CUDA error ("an illegal memory access was encountered", after
which every further call in the process fails) cannot be mistaken for the failure of the checks that follow.
"""

import contextlib
import faulthandler
import itertools
import json
import math
import multiprocessing
import os
import re
import signal
import time
import traceback
from dataclasses import dataclass, field

FORK = multiprocessing.get_context("fork")


class Failed(Exception):
    """The check found something wrong; the message is the whole story, no traceback is needed."""


class Skipped(Exception):
    """The check cannot be made here; the message says why."""


@dataclass
class Context:
    expected: "dict | None"  # what was planned
    require_gpu: bool
    scratch: str  # the only folder anything is written to
    found: "dict | None" = None  # what was read out of the environment
    detail: dict = field(default_factory=dict)  # the numbers a check leaves, whether it passes or not


def skipped(reason):
    return outcome("skipped", reason)


def outcome(status, reason=None, detail=None):
    return {"status": status, "seconds": 0.0, "detail": detail or {}, "reason": reason}


def run(check, context, timeout):
    started = time.monotonic()
    receiver, sender = FORK.Pipe(duplex=False)
    with open(os.path.join(context.scratch, "stack"), "w+", encoding="utf-8") as stack:
        child = FORK.Process(target=_child, args=(check, context, timeout, sender, stack))
        child.start()
        with contextlib.suppress(OSError):
            os.setpgid(child.pid, child.pid)  # the child does the same: whoever comes first
        sender.close()
        result = None
        try:
            result = _wait(child, receiver, started + timeout + 1)
        finally:
            cause = f"still running after {timeout:g} s, killed" if child.is_alive() else _cause(child)
            _end(child, grace=2 if result else 0)
        if result is None:
            stack.seek(0)
            result = outcome("failed", "\n".join([cause, *_places(stack.read())]))
    result["seconds"] = round(time.monotonic() - started, 3)
    return result


def _wait(child, receiver, deadline):
    """The child's outcome, or None when it died or took too long."""
    while time.monotonic() < deadline:
        alive = child.is_alive()  # asked first: what a child sent before it died is still there to be read
        if receiver.poll(0.05):
            try:
                return json.loads(receiver.recv_bytes())
            except EOFError:
                child.join(1)
                return None
        if not alive:
            return None
    return None


def _cause(child):
    if child.exitcode >= 0:
        return f"the process ended with status {child.exitcode} and no result"
    name = signal.Signals(-child.exitcode).name
    return f"the process was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")


def _places(dump):
    """Where the check was, the innermost place first, from what faulthandler left."""
    threads = re.split(r"^(?=Thread |Current thread )", dump, flags=re.MULTILINE)[1:]
    # A crash names its thread. Otherwise it is the main one, which comes last.
    lines = next((thread for thread in threads if thread.startswith("Current")), (threads or [""])[-1]).splitlines()[1:]
    check = itertools.takewhile(lambda line: __file__ not in line, lines)
    return [line for line in check if "<frozen importlib" not in line][:8]


def _end(child, grace):
    """Gives a child time to clean up after itself, then ends whatever is left of its process group."""
    child.join(grace)
    with contextlib.suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL)
    child.join(5)


def _child(check, context, timeout, sender, stack):
    os.setpgid(0, 0)  # so that workers and compilers started by the check can be ended with it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # A crash or a hang cannot raise an exception; this leaves the place where it happened.
    faulthandler.enable(stack)
    faulthandler.dump_traceback_later(timeout, file=stack)
    try:
        check(context)
        result = outcome("passed", detail=context.detail)
    except Skipped as why:
        result = outcome("skipped", str(why), context.detail)
    except Failed as why:
        result = outcome("failed", str(why), context.detail)
    except BaseException as error:  # also SystemExit from a library: whatever it was, this check did not pass
        result = outcome("failed", _told(error), context.detail)
    faulthandler.cancel_dump_traceback_later()
    sender.send_bytes(json.dumps(_plain(result)).encode())


def _told(error):
    """The exception, and the innermost places it came through."""
    places = traceback.extract_tb(error.__traceback__)[-4:]
    lines = [f"  {place.filename}:{place.lineno} in {place.name}: {place.line}" for place in places]
    return "\n".join([f"{type(error).__name__}: {str(error).strip()[-3000:]}", *lines])


def _plain(value):
    """The same in what JSON can hold: NaN and infinity, which a broken kernel may well return, become text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value if value is None or isinstance(value, (bool, int)) else str(value)
