"""The record: what was found, what ran and how it ended. It alone decides the state; skipped is never passed."""

import contextlib
import datetime
import json
import os
import sys
import time


class Record:
    def __init__(self, host, only):
        self.started = datetime.datetime.now(datetime.timezone.utc)
        self.clock = time.monotonic()
        self.host, self.only = host, only
        self.found, self.devices, self.checks = None, [], []

    def add(self, name, group, outcome):
        """Takes one outcome in, and tells people about it."""
        before = self.checks[-1]["reason"] if self.checks else None
        self.checks.append({"name": name, "group": group, **outcome})
        mark = {"passed": "ok  ", "failed": "FAIL", "skipped": "skip"}[outcome["status"]]
        if outcome["status"] == "passed":
            tail = f"{outcome['seconds']:.2f}s"
        else:
            tail = "as above" if outcome["reason"] == before else outcome["reason"].replace("\n", "\n       ")
        print(mark, name, "", tail, file=sys.stderr, flush=True)

    def finish(self):
        counts = {status: len(self.named(status)) for status in ("passed", "failed", "skipped")}
        state, why = self.verdict()
        failures = f" ({', '.join(self.named('failed'))})" if counts["failed"] else ""
        return {
            "schema": 1,
            "image": os.environ.get("SMOKE_IMAGE") or None,
            "started": self.started.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "seconds": round(time.monotonic() - self.clock, 3),
            "host": self.host,
            "only": self.only,
            "found": self.found,
            "devices": self.devices,
            "checks": self.checks,
            "counts": counts,
            "state": state,
            "summary": f"passed {counts['passed']}, failed {counts['failed']}{failures}, "
            f"skipped {counts['skipped']}: {state} ({why})",
        }

    def named(self, status):
        return [check["name"] for check in self.checks if check["status"] == status]

    def verdict(self):
        """The state and, in plain words, why."""
        gpu = [check for check in self.checks if check["group"] == "gpu"]
        if self.named("failed"):
            return "failed", "see the checks named"
        if not self.named("passed"):
            return "failed", "nothing was tested"
        if self.only:
            # A part of the test must never stand for all of it.
            return "not-gpu-tested", f"only {', '.join(self.only)} was asked for"
        if gpu[0]["status"] != "passed":
            return "not-gpu-tested", f"{gpu[0]['reason']}; the CUDA checks did not run"
        return "gpu-tested", f"on {len(self.devices)} × {self.devices[0]['name']}"


def write(document, out, report=None):
    """Writes the record to `out`, and to the file `report`, where a reader finds all of it or what was there before."""
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    if report:
        partial = f"{report}.{os.getpid()}.partial"
        try:
            with open(partial, "x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, report)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(partial)
    with out:
        out.write(text)
