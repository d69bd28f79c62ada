"""Conversion of docstrings for the site: Markdown, and samplers' settings as parameters."""

import ast
import re

import griffe

_ROLE = re.compile(r":(?:func|class|meth|mod|data|attr):`~?\.?([\w.]+)`")
_TABLE = re.compile(r"^( *)=+  +=+\n(.*?)^ *=+  +=+$", re.M | re.S)


class Markdown(griffe.Extension):
    """Convert roles to links, tables to lists, and `::` before an example to a colon."""

    def on_instance(self, *, obj, **_):
        """Convert an object's docstring; aliases share their target's docstring."""
        if obj.docstring:
            text = _TABLE.sub(_list, obj.docstring.value)
            text = re.sub(r"::$", ":", text, flags=re.M)
            obj.docstring.value = _ROLE.sub(lambda match: _link(obj, match[1]), text)

    def on_class_members(self, *, cls, **_):
        """Move a sampler's settings into its docstring, as parameters."""
        if "name" not in cls.keywords or not cls.docstring:
            return
        lines = [f"Example: `fedsampling.scheme({cls.keywords['name']}, …)`"]
        for each in list(cls.members.values()):
            is_setting = each.is_attribute and "property" not in each.labels
            if is_setting and each.annotation and not each.name.startswith("_"):
                lines += [] if len(lines) > 1 else ["", "Parameters", "----------"]
                default, description = _default_and_description(each.value)
                default = f", default: {default}" if default else ""
                lines += [f"{each.name} : {each.annotation}{default}", f"    {description}"]
                del cls.members[each.name]
        text, heading, rest = cls.docstring.value.partition("\n\nReferences\n-")
        cls.docstring.value = "\n".join([text, "", *lines]) + heading + rest


def _default_and_description(value):
    """Read both from a field's value, a constant or a call of pydantic's Field."""
    if not isinstance(value, griffe.ExprCall):
        return str(value or ""), ""
    named, unnamed = {}, []
    for each in value.arguments:
        if isinstance(each, griffe.ExprKeyword):
            named[each.name] = str(each.value)
        else:
            unnamed.append(str(each))
    default = unnamed[0] if unnamed else named.get("default", "")
    return default, ast.literal_eval(named.get("description", "''"))


def _list(table):
    """Convert a table of two columns to a list; a row may continue on the following lines."""
    edge = len(table[1])
    rows = []
    for line in table[2].splitlines():
        if line[edge : edge + 1].strip():
            first, *rest = re.split(r"  +", line.strip(), maxsplit=1)
            rows.append([first, *rest])
        else:
            rows[-1].append(line.strip())
    return "\n".join(f"{table[1]}- {row[0]}: {' '.join(row[1:])}" for row in rows)


def _link(obj, name):
    """Return a link to the object that a role names; its name as code if the site lacks it."""
    try:
        path = name if name.startswith("fedsampling.") else obj.resolve(name)
    except griffe.NameResolutionError:
        return f"`{name}`"
    return f'<autoref identifier="{path}" optional><code>{name}</code></autoref>'
