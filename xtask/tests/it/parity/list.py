"""Every path below the folders that are named: mode, owner, size and content, a line of JSON each."""

import hashlib, json, marshal, os, stat, sys, types


def constant(value):
    """A constant of byte code in a form that does not depend on which objects happened to be shared."""
    if isinstance(value, types.CodeType):
        # Python means to take `co_lnotab` away; what it tells is in `co_linetable`.
        names = sorted(name for name in dir(value) if name.startswith("co_") and name != "co_lnotab")
        fields = [getattr(value, name) for name in names if not callable(getattr(value, name))]
        return [constant(field) for field in fields]
    if isinstance(value, (tuple, list)):
        return [type(value).__name__, *map(constant, value)]
    if isinstance(value, frozenset):
        return ["frozenset", *sorted(map(repr, value))]
    return repr(value)


def content(path, mode):
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    if not stat.S_ISREG(mode):
        return ""
    with open(path, "rb") as file:
        if path.endswith(".pyc"):
            head, code = file.read(16), marshal.loads(file.read())
            return head.hex() + hashlib.sha256(repr(constant(code)).encode()).hexdigest()
        return hashlib.file_digest(file, "sha256").hexdigest()


for top in sys.argv[1:]:
    for folder, folders, files in os.walk(top):
        for name in [".", *folders, *files]:
            path = os.path.normpath(os.path.join(folder, name))
            about = os.lstat(path)
            # How byte code is written down differs in its size too.
            size = about.st_size if stat.S_ISREG(about.st_mode) and not path.endswith(".pyc") else 0
            line = [oct(about.st_mode), about.st_uid, about.st_gid, size, content(path, about.st_mode)]
            print(json.dumps([path, line]))
