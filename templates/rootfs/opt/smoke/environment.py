"""Makes the process independent of who runs it and of what may be written, and tells where it runs."""

import contextlib
import os
import platform
import shutil
import tempfile


@contextlib.contextmanager
def scratch():
    """One folder under the temporary folder that takes everything written during the run, and is gone afterwards.

    An unknown user id has no home and no name. torch.compile, Triton and the CUDA driver each keep a cache in the home
    by default, and getpass.getuser() fails without a name; all of them are pointed here.
    """
    try:
        folder = tempfile.mkdtemp(prefix="smoke-")
    except OSError as error:
        raise SystemExit(f"smoke: no writable temporary folder ({error}): give /tmp a tmpfs or set TMPDIR") from None
    try:
        # The environment variable is for the processes started later, tempdir for this one, which has already looked.
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        for variable in ("HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH", "XDG_CACHE_HOME"):
            os.environ[variable] = os.path.join(folder, variable.lower())
            os.mkdir(os.environ[variable])
        for variable in ("USER", "LOGNAME"):
            os.environ[variable] = os.environ.get(variable) or f"uid-{os.getuid()}"
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def host():
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "glibc": platform.libc_ver()[1] or None,
        "system": _system(),
        "cpus": len(os.sched_getaffinity(0)),
        "uid": os.getuid(),
        "gid": os.getgid(),
        "shm_bytes": _size("/dev/shm"),
        "tmp_bytes": _size(tempfile.gettempdir()),
    }


def _system():
    with contextlib.suppress(OSError):
        return platform.freedesktop_os_release().get("PRETTY_NAME")


def _size(folder):
    with contextlib.suppress(OSError):
        space = os.statvfs(folder)
        return space.f_blocks * space.f_frsize
