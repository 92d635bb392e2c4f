"""The command line. What cannot be obeyed is refused here, before anything runs."""

import argparse
import json
import os

import checks

BESIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "expect.json")


def parse(description):
    parser = argparse.ArgumentParser(
        prog="smoke", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--require-gpu", action="store_true", help="fail when no GPU is usable")
    parser.add_argument("--report", metavar="FILE", help="write the record to FILE as well")
    parser.add_argument(
        "--expect", metavar="FILE", help="what was planned (default: expect.json beside this program, where it exists)"
    )
    parser.add_argument("--timeout", type=float, default=900, metavar="SECONDS", help="for each check (900)")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="only these checks or groups (cpu, gpu, …), and what they rest on"
    )
    parser.add_argument("--list", action="store_true", help="name the checks and what each one proves; run none")
    args = parser.parse_args()

    unknown = set(args.only or ()) - checks.names()
    if unknown:
        parser.error(f"--only: no check or group is called {', '.join(sorted(unknown))}; --list names them")
    if not args.timeout > 0:
        parser.error("--timeout: must be more than 0")
    # Learned now, not after a minute of work.
    if args.report and not os.access(os.path.dirname(os.path.abspath(args.report)), os.W_OK):
        parser.error(f"--report {args.report}: its folder is missing or not writable")
    try:
        args.expected = plan(args.expect)
    except (OSError, ValueError) as error:
        parser.error(f"--expect {args.expect or BESIDE}: {error}")
    return args


def plan(path):
    """The planned contents, or None where no plan is given: a plan that was asked for must be readable."""
    if path is None and not os.path.exists(BESIDE):
        return None
    with open(path or BESIDE, encoding="utf-8") as file:
        expected = json.load(file)
    if not isinstance(expected, dict):
        raise ValueError("not a JSON object")
    # A proof that nobody knows how to make must not pass by not being made.
    unknown = checks.planned(expected) - checks.GROUPS.keys()
    if unknown:
        raise ValueError(f"smoke: no group is called {', '.join(sorted(unknown))}; --list names them")
    return expected
