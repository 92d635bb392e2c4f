"""Reads shared objects: enough of ELF to follow libraries without ldd, and to name the GPUs that code in it is for."""

import os
import struct
from dataclasses import dataclass

# From elf.h.
PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_STRTAB, DT_RPATH, DT_RUNPATH = 1, 5, 15, 29
# What every container of GPU code begins with.
FATBIN = 0xBA55ED50


@dataclass
class Dynamic:
    machine: int
    needed: list  # names of the libraries it asks for
    rpath: list  # where they are searched, and those of the libraries it loads
    runpath: list  # where they are searched; when it is there, rpath does not count


def read(path):
    """The dynamic section of the 64-bit little-endian object at `path`; ValueError when it is anything else."""
    with open(path, "rb") as file:

        def part(offset, size):
            file.seek(offset)
            return file.read(size)

        header = part(0, 64)
        if len(header) < 64 or header[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is not a shared library ({os.path.getsize(path)} bytes)")
        (machine,) = struct.unpack_from("<H", header, 18)
        (table,) = struct.unpack_from("<Q", header, 32)
        entry, count = struct.unpack_from("<HH", header, 54)
        segments = [struct.unpack_from("<IIQQQQ", part(table + i * entry, entry)) for i in range(count)]

        # The section holds pairs of tag and value and ends with tag 0.
        pairs = []
        for kind, _, offset, _, _, size in segments:
            if kind == PT_DYNAMIC:
                pairs = list(struct.iter_unpack("<qQ", part(offset, size - size % 16)))
        pairs = pairs[: next((i for i, (tag, _) in enumerate(pairs) if tag == 0), len(pairs))]

        # Texts are given by their distance from a table, and the table by its address once loaded.
        address = dict(pairs).get(DT_STRTAB, 0)
        texts = 0
        for kind, _, offset, start, _, size in segments:
            if kind == PT_LOAD and start <= address < start + size:
                texts = address - start + offset

        def text(distance):
            found = b""
            while b"\0" not in found:
                more = part(texts + distance + len(found), 256)
                if not more:
                    raise ValueError(f"{path} is cut short")
                found += more
            return found.split(b"\0")[0].decode()

        def texts_of(wanted):
            return [text(value) for tag, value in pairs if tag == wanted]

        origin = os.path.dirname(os.path.realpath(path))

        def folders(wanted):
            joined = ":".join(texts_of(wanted)).replace("${ORIGIN}", origin).replace("$ORIGIN", origin)
            return [folder for folder in joined.split(":") if folder]

        return Dynamic(machine, texts_of(DT_NEEDED), folders(DT_RPATH), folders(DT_RUNPATH))


def gpu_code(path):
    """The GPU architectures that the object at `path` holds code for, as torch names them: sm_75, compute_75 (PTX)."""
    fat, found, place = section(path, ".nv_fatbin"), set(), 0
    while place + 16 <= len(fat):
        magic, _, header, size = struct.unpack_from("<IHHQ", fat, place)
        if magic != FATBIN:
            place += 8  # padding between what several compilations left
            continue
        entry, end = place + header, place + header + size
        while entry < end:
            kind, _, length, content = struct.unpack_from("<HHIQ", fat, entry)
            (number,) = struct.unpack_from("<I", fat, entry + 28)
            found.add(f"{'compute' if kind == 1 else 'sm'}_{number}")
            entry += length + content
        place = end
    return sorted(found)


def section(path, wanted):
    """The content of the section of that name; empty where there is none."""
    with open(path, "rb") as file:
        header = file.read(64)
        (table,) = struct.unpack_from("<Q", header, 40)
        entry, count, texts = struct.unpack_from("<HHH", header, 58)

        def at(number):
            file.seek(table + number * entry)
            return struct.unpack("<IIQQQQ", file.read(40))

        def content(number):
            _, _, _, _, offset, size = at(number)
            file.seek(offset)
            return file.read(size)

        names = content(texts)
        for number in range(count):
            name = at(number)[0]
            if names[name : names.index(b"\0", name)].decode() == wanted:
                return content(number)
    return b""
