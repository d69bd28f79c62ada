"""YAML parsing; no other module parses YAML."""

from collections.abc import Iterator
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from fedsampling.base.errors import InputError

# Both are safe; libyaml's parser, if PyYAML was built with it, is several times faster.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MERGE_TAG = "tag:yaml.org,2002:merge"  # of the key <<


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds a mapping."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise InputError(f"{path}: cannot be read ({reason}); must be a YAML file") from None
    content = parse_yaml(text, str(path))
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InputError(
            f"{path}: contains a {type(content).__name__}; must consist of 'key: value' lines"
        )
    return content


def parse_yaml(text: str, origin: str) -> Any:
    """Parse YAML, such as the value of an option; `origin` starts each error line."""
    return deepcopy(_parsed(text, origin))


@lru_cache(maxsize=32)  # a process reads some papers' files several times; each takes 0.1 s
def _parsed(text: str, origin: str) -> Any:
    try:
        return _constructed(text, origin)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        problem = getattr(error, "problem", None) or "not readable"
        raise InputError(f"{origin}:{line} is not YAML ({problem}); fix that line") from None
    except (ArithmeticError, AttributeError, LookupError, RecursionError, ValueError) as error:
        # Values that their type rejects, such as month 13.
        raise InputError(f"{origin}: is not YAML ({error}); fix or quote the value") from None


def _constructed(text: str, origin: str) -> Any:
    """Build the values and reject duplicate keys, of which PyYAML would silently use the last."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if repeated := [*_repeated(node, set())]:
            raise InputError(
                *(
                    f"{origin}: line {key.start_mark.line + 1}: duplicate key '{key.value}'; "
                    "remove one"
                    for key in repeated
                )
            )
        _merge(node, set())
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def _repeated(node: Any, seen: set[int]) -> Iterator[Any]:
    """Yield the duplicate keys of all mappings in a YAML tree; aliases are visited once."""
    if id(node) in seen or not isinstance(node, yaml.CollectionNode):
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated(item, seen)
        return
    keys: set[str] = set()
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode):
            if key.value in keys:
                yield key
            keys.add(key.value)
        yield from _repeated(value, seen)


def _merge(node: Any, seen: set[int]) -> None:
    """Replace the keys << of all mappings by what they merge.

    A mapping's own keys win, then those of the first mapping in a list.  In some versions of PyYAML
    (6.0.4), the last one wins.
    """
    if id(node) in seen or not isinstance(node, yaml.CollectionNode):
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _merge(item, seen)
        return
    merged, own = [], []
    for key, value in node.value:
        _merge(value, seen)
        if key.tag == MERGE_TAG:
            merged += [pair for source in _sources(value) for pair in source.value]
        else:
            own.append((key, value))
    if merged:
        node.value = [*{_identity(key): (key, value) for key, value in merged + own}.values()]


def _sources(node: Any) -> list[Any]:
    """Return the mappings that a key << names; a later one wins."""
    sources = node.value[::-1] if isinstance(node, yaml.SequenceNode) else [node]
    for source in sources:
        if not isinstance(source, yaml.MappingNode):
            raise yaml.constructor.ConstructorError(
                problem="<< merges mappings only", problem_mark=source.start_mark
            )
    return sources


def _identity(key: Any) -> Any:
    """Return what two equal keys of a mapping have in common."""
    return (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else id(key)
