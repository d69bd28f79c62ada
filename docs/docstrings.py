"""What reStructuredText stands in the docstrings, as the Markdown of the site."""

import re

import griffe

_ROLE = re.compile(r":(?:func|class|meth|mod|data|attr):`~?\.?([\w.]+)`")
_TABLE = re.compile(r"^( *)=+  +=+\n(.*?)^ *=+  +=+$", re.M | re.S)


class Markdown(griffe.Extension):
    """Turn roles into links, tables into lists, and `::` before an example into a colon."""

    def on_instance(self, *, obj, **_):
        """Change an object's docstring; aliases have that of their target."""
        if obj.docstring:
            text = _TABLE.sub(_list, obj.docstring.value)
            text = re.sub(r"::$", ":", text, flags=re.M)
            obj.docstring.value = _ROLE.sub(lambda found: _link(obj, found[1]), text)


def _list(table):
    """Return a table of two columns as a list; a row may go on in lines below it."""
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
    """Return a link to what a role names, if the site has it."""
    try:
        path = name if name.startswith("fedsampling.") else obj.resolve(name)
    except griffe.NameResolutionError:
        return f"`{name}`"
    return f'<autoref identifier="{path}" optional><code>{name}</code></autoref>'
