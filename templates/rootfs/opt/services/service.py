"""What the services have in common: how they refuse, what they are told, and how to see whether they answer."""

import http.client
import importlib.util
import os
import ssl
import sys

NAME = os.path.basename(sys.argv[0])
WORK = "/workspace"


def say(text):
    print(f"{NAME}: {text}", file=sys.stderr, flush=True)


def refuse(error, what, way_out):
    """Ends the service before it has started anything."""
    say(f"error[{error}]: {what}: {way_out}")
    sys.exit(2)


def is_there(module):
    return importlib.util.find_spec(module) is not None


def need(module):
    if not is_there(module):
        refuse("E_NOT_INSTALLED", f"this image has no {NAME}", "take a variant that has it")


def secret(name):
    """What `NAME` holds, or the file that `NAME_FILE` names; None where neither is set."""
    value, path = os.environ.get(name), os.environ.get(f"{name}_FILE")
    if path is None:
        return value
    if value is not None:
        refuse("E_SECRET_TWICE", f"{name} and {name}_FILE are both set", "leave one out")
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text"
        refuse("E_SECRET_FILE", f"{name}_FILE={path}: {reason}", f"mount it readable for uid {os.geteuid()}")


def port(name, default):
    """A port. Kubernetes puts `tcp://…` into `NAME_PORT` where it has a service of this name: that is not for us."""
    value = os.environ.get(name) or str(default)
    if value.startswith("tcp://"):
        return default
    if not (value.isascii() and value.isdigit() and 0 < int(value) < 65536):
        refuse("E_PORT", f"{name}={value}", "a number from 1 to 65535")
    return int(value)


def make_folder(path, mode=0o777):
    """Whether the folder is there, made if need be; what its server cannot write in is told apart by the caller."""
    try:
        os.makedirs(path, mode, exist_ok=True)
    except OSError:
        return False
    return True


def writable(path):
    return os.access(path, os.W_OK | os.X_OK)


def owner(path):
    """Why a folder is not ours, with both uids."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return f"{path} belongs to uid {os.lstat(path).st_uid} and this runs as uid {os.geteuid()}"


def answer(host, port, path, tls=False):
    """The status of what answers there; ends the check where nothing does."""
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "*": "127.0.0.1", "::": "::1"}.get(host, host)
    try:
        if tls:
            # Whether it answers is the question, not who signed its certificate.
            context = ssl._create_unverified_context()  # noqa: S323
            connection = http.client.HTTPSConnection(host, port, timeout=2, context=context)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=2)
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        say(f"nothing answers on {host}:{port}: {error}")
        sys.exit(1)
