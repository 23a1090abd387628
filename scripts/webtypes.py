"""Write web/src/api.ts: the types of the API and of reports for the web UI, from docs/openapi.json.

    python3 scripts/webtypes.py            writes it
    python3 scripts/webtypes.py --check    ends with 1 where it is not what this would write

The types are those of the Go program (scripts/openapi.py writes the description), so that the page and the server cannot
say different things. A new field is a Go field with a sentence in its doc tag.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DESCRIPTION = ROOT / "docs" / "openapi.json"
FILE = ROOT / "web" / "src" / "api.ts"

HEAD = """\
// The API's types, made from docs/openapi.json. To change one, change the Go type, then run make
// build, scripts/openapi.py and scripts/webtypes.py. Bytes and nanoseconds are integers; a key that
// is missing was not observed.
"""
COLUMNS = 100

Schema = dict[str, Any]


def type_of(schema: Schema) -> str:
    """The TypeScript type of a schema."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "anyOf" in schema:
        return " | ".join(type_of(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    kinds = schema.get("type", "unknown")
    if isinstance(kinds, list):
        return " | ".join(type_of({**schema, "type": kind}) for kind in kinds)
    return {"array": list_of, "object": record_of}.get(kinds, simple)(schema)


def list_of(schema: Schema) -> str:
    """A tuple where the number of items is fixed, else a list."""
    item = type_of(schema["items"])
    if schema.get("minItems") == schema.get("maxItems") and "minItems" in schema:
        return f"[{', '.join([item] * schema['minItems'])}]"
    return f"({item})[]" if "|" in item else f"{item}[]"


def record_of(schema: Schema) -> str:
    values = schema.get("additionalProperties")
    return f"Record<string, {type_of(values)}>" if isinstance(values, dict) else "Record<string, unknown>"


def simple(schema: Schema) -> str:
    return {"integer": "number", "number": "number", "string": "string", "boolean": "boolean", "null": "null"}.get(
        schema.get("type", ""), "unknown"
    )


def comment(text: str, indent: str) -> list[str]:
    """A sentence as JSDoc: on one line where it fits, else on several."""
    text = re.sub(r"\s+", " ", text).replace("*/", "* /")
    if len(f"{indent}/** {text} */") <= COLUMNS:
        return [f"{indent}/** {text} */"]
    lines = textwrap.wrap(text, COLUMNS - len(indent) - 3, break_long_words=False, break_on_hyphens=False)
    return [f"{indent}/**", *(f"{indent} * {line}" for line in lines), f"{indent} */"]


def one_or_several(begin: str, union: str, indent: str) -> list[str]:
    """A declaration on one line where it fits, or two, else each alternative on its own, as the formatter has it."""
    if len(line := f"{begin} {union};") <= COLUMNS:
        return [line]
    if len(line := f"{indent}  {union};") <= COLUMNS and begin.endswith("="):
        return [begin, line]
    if union.startswith("(") and union.endswith(")[]"):
        inner = union[1:-3]
        if len(line := f"{indent}  {inner}") <= COLUMNS:
            return [f"{begin} (", line, f"{indent})[];"]
        return [f"{begin} (", *(f"{indent}  | {value}" for value in inner.split(" | ")), f"{indent})[];"]
    *values, last = (f"{indent}  | {value}" for value in union.split(" | "))
    return [begin, *values, f"{last};"]


def declared(name: str, schema: Schema) -> list[str]:
    """The lines that declare one schema."""
    head = comment(schema["description"], "") if "description" in schema else []
    if "properties" not in schema:
        values = type_of(schema)
        return [*head, *one_or_several(f"export type {name} =", values, "")]
    lines = [*head, f"export interface {name} {{"]
    required = set(schema.get("required", []))
    for field, of in schema["properties"].items():
        if field == "$schema":
            continue
        if "description" in of:
            lines += comment(of["description"], "  ")
        lines += one_or_several(f"  {field}{'' if field in required else '?'}:", type_of(of), "  ")
    return [*lines, "}"]


def made() -> str:
    schemas = json.loads(DESCRIPTION.read_text("utf-8"))["components"]["schemas"]
    parts = ["\n".join(declared(name, schema)) for name, schema in sorted(schemas.items())]
    return HEAD + "\n" + "\n\n".join(parts) + "\n"


def main() -> int:
    if "--check" not in sys.argv:
        FILE.write_text(made(), "utf-8")
        return 0
    if FILE.exists() and FILE.read_text("utf-8") == made():
        return 0
    print("web/src/api.ts is not what docs/openapi.json says: python3 scripts/webtypes.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
