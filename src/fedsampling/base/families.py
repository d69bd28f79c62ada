"""Families of records: samplers, datasets, models and other choices by name.

The classes in a family's folder are its members: adding a file there registers it, and no list has
to be edited.
"""

import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar
from weakref import ref

from pydantic import BaseModel, GetCoreSchemaHandler, PydanticUserError, ValidationError
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from fedsampling.base.errors import InputError, import_error_lines, nearest
from fedsampling.base.lazy import pd
from fedsampling.base.record_errors import as_input_error, class_error, short
from fedsampling.base.records import Strict

OWN_FILE = "schemes_of_"  # prefix of modules loaded from user files
Member = TypeVar("Member", bound="Named")


class _ReadableErrors(type(BaseModel)):  # type: ignore[misc]
    """Convert pydantic's errors at the two entry points of users' code: class and constructor.

    ``model_validate`` does not pass through here, so that nested errors are converted once.
    """

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **arguments: Any
    ) -> Any:
        if "title" in arguments:  # which pydantic would keep for its own configuration
            arguments["titled"] = arguments.pop("title")
        try:
            return super().__new__(cls, name, bases, namespace, **arguments)
        except PydanticUserError as error:
            raise InputError(f"class {name}: {class_error(error, namespace)}") from None

    def __call__(cls, *args: Any, **settings: Any) -> Any:
        try:
            return super().__call__(*args, **settings)
        except ValidationError as error:
            raise as_input_error(error, cls, settings, f"{cls.__name__}.") from None


if TYPE_CHECKING:
    _Readable = Strict  # mypy knows BaseModel's metaclass only by its private name
else:

    class _Readable(Strict, metaclass=_ReadableErrors):
        """Base of :class:`Named`, with readable errors."""


_NAMED: dict[str, list[ref[type[Any]]]] = {}  # all members of all families, by name


class Named(_Readable):
    """A record that users choose by name among the members of its family.

    A family declares the package of its members; a member declares its name::

        class Scheme(Named, package="fedsampling.samplers"): ...
        class MD(Scheme, name="md"): ...

    A field annotated with the family accepts any member; ``name`` in the input selects the class
    that checks it.  A field annotated with an intermediate class accepts the members derived from
    that class.

    Class arguments of a member: `name`; `title` and `short`, which pages and figures show and which
    are by default the name; `code`, for a member whose algorithm is in another module because that
    module is slow to import.  Class arguments of a family: `package`; `key`, the field that holds
    the name, by default ``"name"``.
    """

    package: ClassVar[str] = ""
    key: ClassVar[str] = "name"
    named: ClassVar[str] = ""
    title: ClassVar[str] = ""
    short: ClassVar[str] = ""
    code: ClassVar[str] = ""

    def __init_subclass__(
        cls,
        name: str = "",
        titled: str = "",
        short: str = "",
        code: str = "",
        package: str = "",
        key: str = "",
        **arguments: Any,
    ) -> None:
        """Store the class arguments; runs before pydantic collects the fields."""
        super().__init_subclass__(**arguments)
        cls.named, cls.code = name, code or cls.__module__
        cls.title, cls.short = titled or name, short or titled or name
        if package:
            cls.package, cls.key = package, key or "name"
        if name:
            _NAMED.setdefault(name, []).insert(0, ref(cls))  # the newest first
            # The name is a field, so that plain data from a record identify its class.
            cls.__annotations__ = {cls.key: Literal[name], **cls.__annotations__}
            setattr(cls, cls.key, name)

    @classmethod
    def members(cls) -> dict[str, type[Self]]:
        """Return the members that derive from this class, by name, in alphabetical order."""
        _import_all(cls.package)
        members = sorted(_below(cls), key=lambda member: member.named)
        return {member.named: member for member in members}

    @classmethod
    def member(cls, name: str) -> type[Self]:
        """Return the member of a name."""
        for member in cls.named_as(name) if isinstance(name, str) else ():
            return member
        members = cls.members()
        if name in members:  # its name is not a literal
            return members[name]
        raise ValueError(f"{short(name)} is unknown; {nearest(str(name), members)}")

    @classmethod
    def named_as(cls, name: str) -> Iterator[type[Self]]:
        """Yield the members of a name, importing only the modules that mention it."""
        for module in _modules_by_name(cls.package).get(name, ()):
            import_module(module)
        for reference in _NAMED.get(name, ()):
            member = reference()  # None if nothing else uses the class any more
            if member and member.named == name and issubclass(member, cls):
                yield member

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if cls.named or not cls.package:
            return super().__get_pydantic_core_schema__(source, handler)
        return core_schema.no_info_plain_validator_function(
            cls._choose,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda record, info: record.model_dump(mode=info.mode), info_arg=True
            ),
        )

    @classmethod
    def _choose(cls, value: Any) -> "Named":
        """Return the member that a record or a mapping describes; its name selects the class."""
        if isinstance(value, cls) and value.named:
            return value
        if not isinstance(value, Mapping):
            no_mapping = PydanticCustomError("model_type", "'key: value' lines")
            raise _validation_error(cls, no_mapping, (), value)
        if (member := cls.by_content(value)) is not None:
            return member.model_validate(value)
        name = value.get(cls.key)
        if name is None:
            missing = PydanticCustomError("missing", "add it")
            raise _validation_error(cls, missing, (cls.key,), value)
        try:
            member = cls.member(name)
        except ValueError as error:
            unknown = PydanticCustomError("value_error", "unknown", {"error": str(error)})
            raise _validation_error(cls, unknown, (cls.key,), name) from None
        return member.model_validate(value)

    @classmethod
    def by_content(cls, value: Mapping[str, Any]) -> "type[Named] | None":
        """Return the member that keys other than the name select; None if the name decides."""
        return None

    @classmethod
    def class_for(cls, value: Mapping[str, Any]) -> "type[Named]":
        """Return the class that validates a mapping: a member, or this class if none fits."""
        if cls.named:
            return cls
        return cls.by_content(value) or cls.members().get(str(value.get(cls.key)), cls)


def _validation_error(
    cls: type, kind: PydanticCustomError, loc: tuple[str, ...], value: Any
) -> ValidationError:
    """Build an error that pydantic reports with its other errors, at `loc` in the field."""
    details = InitErrorDetails(type=kind, loc=loc, input=value)
    return ValidationError.from_exception_data(cls.__name__, [details])


def _below(cls: type[Named]) -> Iterator[type[Any]]:
    """Yield all members among the direct and indirect subclasses."""
    for subclass in cls.__subclasses__():
        if subclass.named:
            yield subclass
        yield from _below(subclass)


@cache
def _import_all(package: str) -> None:
    """Import the modules of a family, which registers its members."""
    for module in _modules(package):
        import_module(module)


@cache
def _modules_by_name(package: str) -> dict[str, list[str]]:
    """Return the modules of a family by the names that they assign (``name="md"``)."""
    modules: dict[str, list[str]] = {}
    for module in _modules(package):
        if (spec := find_spec(module)) and spec.origin:
            for name in re.findall(r'\bname="([^"]+)"', Path(spec.origin).read_text("utf-8")):
                modules.setdefault(name, []).append(module)
    return modules


def _modules(package: str) -> list[str]:
    """Return the modules directly in a package; the package itself, if it is a module."""
    if (path := getattr(import_module(package), "__path__", None)) is None:
        return [package]
    return [f"{package}.{entry.name}" for entry in pkgutil.iter_modules(path) if not entry.ispkg]


def load_members(
    family: type[Member], module: str, path: Path, load: Callable[[], object]
) -> tuple[type[Member], ...]:
    """Import a module from outside the package, once, by `load`; return the members it defines."""
    if module not in sys.modules:
        try:
            load()
            for member in _defined(family, module):
                for existing in family.named_as(member.named):
                    if existing.__module__ != module:
                        raise InputError(
                            f"{path}: {family.key} {member.named!r} is already used by "
                            f"{existing.__module__}; choose another"
                        )
        except (Exception, SystemExit) as error:  # a user's file can raise anything
            for member in list(_below(family)):
                if member.__module__ == module:
                    member.named = ""  # unregisters it
            sys.modules.pop(module, None)
            raise InputError(*import_error_lines(error, path, module)) from None
    return tuple(_defined(family, module))


def _defined(family: type[Member], module: str) -> list[type[Member]]:
    """Return the members that a module defines, in order, without imported members."""
    return [
        value
        for value in vars(sys.modules[module]).values()
        if isinstance(value, type)
        and issubclass(value, family)
        and value.named
        and value.__module__ == module
    ]


def members_within(record: BaseModel) -> Iterator[Named]:
    """Yield the record itself, if it is a member of a family, and all members nested in it."""
    if isinstance(record, Named):
        yield record
    for name in type(record).__pydantic_fields__:
        value = getattr(record, name)
        if isinstance(value, BaseModel):
            yield from members_within(value)


def catalogue(family: type[Named], *properties: str) -> "pd.DataFrame":
    """List the members of a family: name, settings with defaults, `properties` and description."""
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
    return "by its settings" if value is None or isinstance(value, property) else str(value)
