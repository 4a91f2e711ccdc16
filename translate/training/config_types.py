"""How paths and text travel through config files. Importing this module teaches jsonargparse."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from jsonargparse import set_dumper
from jsonargparse.typing import register_type


class _Dumper(yaml.SafeDumper):
    """Quotes text like 77950e8, which PyYAML calls text and jsonargparse reads as a number."""


_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


def _dump(data: Any) -> str:
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


set_dumper("yaml", _dump)

# A path in a config file is meant from that file, one on the command line from the working
# directory. jsonargparse reads a config file with its folder as the working directory.
register_type(
    Path,
    serializer=str,
    deserializer=lambda text: Path(text).expanduser().absolute(),
    fail_already_registered=False,
)
