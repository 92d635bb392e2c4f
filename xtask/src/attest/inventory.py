"""What is installed in an image, as JSON on standard output; it runs in the image with its own interpreter."""

import importlib.metadata
import json
import platform
import re
import subprocess

FIELDS = "${db:Status-Status}\t${Package}\t${Version}\t${Architecture}\n"


def debian():
    told = subprocess.run(["dpkg-query", "--show", f"--showformat={FIELDS}"], capture_output=True, text=True, check=True)
    for line in told.stdout.splitlines():
        status, name, version, architecture = line.split("\t")
        if status == "installed":
            yield {"name": name, "version": version, "architecture": architecture}


def wheels():
    for it in importlib.metadata.distributions():
        told = it.metadata
        license_name = (told["License"] or "").strip()
        yield {
            "name": re.sub(r"[-_.]+", "-", told["Name"]).lower(),
            "version": it.version,
            "expression": told["License-Expression"],
            # Some put the whole text there.
            "license": license_name if 0 < len(license_name) < 65 and "\n" not in license_name else None,
        }


release = platform.freedesktop_os_release()
distribution = {"id": release["ID"], "version": release.get("VERSION_ID", "")}
print(json.dumps({"distribution": distribution, "debian": list(debian()), "wheels": list(wheels())}))
