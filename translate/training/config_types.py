"""Set how jsonargparse reads and writes values, when this module is imported.

This concerns text, paths, and the classes that a config may name (class_path).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import yaml
from jsonargparse import set_dumper, set_parsing_settings
from jsonargparse.typing import register_type

# A config may name classes of these packages only. Otherwise somebody else's config could run any
# function of any module on the path, which includes the current folder.
ALLOWED_PACKAGES = ("torch", "lightning", "translate")
# An environment variable with further packages, separated by commas.
PACKAGES_VARIABLE = "TRANSLATE_CLASSES"


class _Dumper(yaml.SafeDumper):
    """Dumper that quotes text such as 77950e8, which jsonargparse would read as a number."""


_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


def _dump(data: Any) -> str:
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


set_dumper("yaml", _dump)

# Paths in a config file are relative to that file, paths on the command line to the working
# directory: jsonargparse changes to the folder of a config file while it reads it.
register_type(
    Path,
    serializer=str,
    deserializer=lambda text: Path(text).expanduser().absolute(),
    fail_already_registered=False,
)


def allow_packages() -> None:
    """Let configs name classes of ALLOWED_PACKAGES and of those in the environment variable.

    Raises:
        ValueError: the variable holds something else than names of packages.
    """
    further = [name.strip() for name in os.environ.get(PACKAGES_VARIABLE, "").split(",")]
    allowed = [*ALLOWED_PACKAGES, *filter(None, further)]
    set_parsing_settings(import_path_denylist=["*"], import_path_allowlist=allowed)


# Lightning turns on configs from URLs; a config is a local file.
set_parsing_settings(config_read_mode_urls_enabled=False, config_read_mode_fsspec_enabled=False)
