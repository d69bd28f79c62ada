"""A table of the members of a family of records, such as all datasets."""

import inspect
from typing import TYPE_CHECKING

from fedsampling.base.families import Named

if TYPE_CHECKING:
    import pandas as pd


def catalogue(family: type[Named], *properties: str) -> "pd.DataFrame":
    """List the members of a family.

    `*properties`: class attributes to include, such as ``"needs"``. Returns columns ``name``,
    ``settings`` (with defaults), the properties, and ``description``.
    """
    import pandas as pd

    rows = []
    for name, member in family.members().items():
        settings = [
            key if field.is_required() else f"{key}={field.get_default()!r}"
            for key, field in member.model_fields.items()
            if key != member.key
        ]
        columns = {key: _text(getattr(member, key)) for key in properties}
        rows.append(
            {
                "name": name,
                "settings": ", ".join(settings),
                **columns,
                "description": description(member),
            }
        )
    return pd.DataFrame(rows)


def description(member: type) -> str:
    """Return the first paragraph of a member's docstring in one line."""
    return inspect.cleandoc(member.__doc__ or "").split("\n\n")[0].replace("\n", " ")


def _text(value: object) -> str:
    if isinstance(value, frozenset):
        return ", ".join(sorted(value))
    return "by its settings" if isinstance(value, property) else str(value)
