"""Proves that the PyTorch and CUDA environment it runs in works, and leaves a record of what was proved.

stdout carries the record, one JSON document, and nothing else. Lines for people go to stderr.
Exit status: 0 what ran has passed, 1 a check failed, 2 the command line is refused.
"""

import os
import sys

# Nothing is written beside these files: the root file system may be read-only, or this may be somebody's checkout.
sys.dont_write_bytecode = True
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

import signal

import checks
import environment
import options
import runner
from record import Record, write


def run(args, scratch):
    """Runs the checks in order and returns the record; a check that others rest on blocks them when it fails."""
    context = runner.Context(args.expected, args.require_gpu, scratch)
    record, blocked = Record(environment.host(), args.only), {}
    for check in checks.select(args.only, checks.planned(args.expected)):
        group = checks.group(check)
        if group in blocked:
            outcome = runner.skipped(blocked[group])
        else:
            outcome = runner.run(check, context, args.timeout)
        if check is checks.IMPORTS:
            context.found = record.found = outcome["detail"].pop("found", None)
            if record.found:
                checks.preload()
            else:
                blocked = dict.fromkeys(checks.GROUPS, "torch or torchvision was not imported")
        elif check is checks.GPU_VISIBLE:
            record.devices = outcome["detail"].pop("devices", [])
            if not record.devices:
                blocked["gpu"] = outcome["reason"]
        record.add(checks.name(check), group, outcome)
    return record.finish()


def main():
    args = options.parse(__doc__)
    if args.list:
        print(checks.listing())
        return 0
    # Libraries print to descriptor 1 when they please. From here on that is stderr; only the record gets the real one.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # Being told to stop must end the running check too: leaving by exception takes its processes along.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with environment.scratch() as scratch:
        document = run(args, scratch)
    write(document, out, args.report)
    print(document["summary"], file=sys.stderr)
    return 1 if document["state"] == "failed" else 0


if __name__ == "__main__":
    sys.exit(main())
