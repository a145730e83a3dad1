"""Holds a schema against configurations: tells which of them it refuses, and where.

Reads one JSON object {schema, texts: {name: TOML}} from stdin, and prints {name: [faults]}.
"""

from __future__ import annotations

import json
import sys
import tomllib

import jsonschema

asked = json.load(sys.stdin)
jsonschema.Draft7Validator.check_schema(asked["schema"])
validator = jsonschema.Draft7Validator(asked["schema"])


def faults(text: str) -> list[str]:
    found = validator.iter_errors(tomllib.loads(text))
    return [f"{'.'.join(map(str, fault.absolute_path))}: {fault.message[:200]}" for fault in found]


json.dump({name: faults(text) for name, text in asked["texts"].items()}, sys.stdout)
