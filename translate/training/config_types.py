"""Set how jsonargparse reads and writes paths and text, when this module is imported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from jsonargparse import set_dumper
from jsonargparse.typing import register_type


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
