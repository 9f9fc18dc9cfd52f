"""Reading YAML files into checked values: unknown keys are refused with the nearest known one suggested.

Every kind of file a user writes (layouts, studies) is a pydantic model derived from `Checked` and read by `read_yaml`.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from skeleton_cgl.errors import InputError


class Checked(BaseModel):
    """A frozen value whose fields are checked when it is made; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    younger: ClassVar[Mapping[str, Any]] = {}
    """Fields that came while records were kept, each with the value that means "as before"."""

    @property
    def as_before(self) -> set[str]:
        """The fields that digests leave out, so that keys stay what they were: younger ones that change nothing."""
        return {name for name, value in self.younger.items() if getattr(self, name) == value}


Model = TypeVar("Model", bound=Checked)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the known word nearest to `word`, else the list of known words."""
    known = sorted(known)
    near = get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"


def place_of(word: str, names: Sequence[str]) -> int | None:
    """Return the place among `names` of what a user gives by name or by number; None where there is no such one."""
    if word in names:
        return names.index(word)
    return int(word) if word.isdecimal() and int(word) < len(names) else None


def read_yaml(path: str | Path, model: type[Model]) -> Model:
    """Return the `model` described by the YAML file at `path`; refuse what does not fit, naming file and field."""
    return check(read_fields(path), model, where=str(path))


def read_fields(path: str | Path) -> dict[str, Any]:
    """Return the fields of a YAML file, not yet checked; refuse what is no YAML, and a key given twice."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    try:
        content = yaml.load(text, _UniqueKeyLoader)
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not valid YAML: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected fields (`name: value`), found {type(content).__name__}")
    return content


def set_field(fields: dict[str, Any], assignment: str) -> None:
    """Change nested fields by an assignment such as `training.epochs=20`; the value is read as YAML."""
    path, equals, text = assignment.partition("=")
    if not equals or not path:
        raise InputError(f"--set {assignment}: expected FIELD=VALUE, such as training.epochs=20")
    try:
        put(fields, path, yaml.safe_load(text))
    except (yaml.YAMLError, InputError) as error:
        raise InputError(f"--set {assignment}: {error}") from error


def put(fields: dict[str, Any], path: str, value: Any) -> None:
    """Set the field at a dotted path; in a list, a number means one entry and a name means that field of every entry.

    A name given as text, such as `backbone: gcn`, becomes `{name: gcn}` when a field of it is set. Refused: a path
    through something that has no fields, and an entry that is not there.
    """
    _put(fields, path.split("."), value)


def _put(place: Any, path: list[str], value: Any) -> None:
    first, *rest = path
    if isinstance(place, list):
        entries = range(len(place)) if not first.isdecimal() else [int(first)]
        if entries and max(entries) >= len(place):
            raise InputError(f"there is no entry {first} among {len(place)}")
        for entry in entries:
            inside = rest if first.isdecimal() else path
            place[entry] = _entered(place[entry], inside, value)
    elif isinstance(place, dict):
        place[first] = _entered(place.get(first, {}), rest, value)
    else:
        raise InputError(f"{place!r} has no field {first!r}")


def _entered(inner: Any, path: list[str], value: Any) -> Any:
    """Return what stands at a place after the field at `path` below it was set."""
    if not path:
        return value
    inner = {"name": inner} if isinstance(inner, str) else inner
    _put(inner, path, value)
    return inner


def check(content: dict[str, Any], model: type[Model], where: str) -> Model:
    """Return `content` as a `model`; refuse what does not fit, with `where` and the field at the front."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        lines = [_explain(model, problem) for problem in error.errors(include_url=False)]
        raise InputError("\n".join(f"{where}: {line}" for line in lines)) from error


def _explain(model: type[BaseModel], problem: Any) -> str:
    location, kind = problem["loc"], problem["type"]
    field = ".".join(str(part) for part in location)
    if kind == "extra_forbidden":
        return f"unknown field {field!r}{did_you_mean(str(location[-1]), _fields_at(model, location[:-1]))}"
    if kind == "missing":
        return f"field {field!r} is missing"
    message = problem["msg"].removeprefix("Value error, ")
    return f"field {field!r}: {message}" if field else message


def _fields_at(model: type[BaseModel], location: tuple[Any, ...]) -> list[str]:
    """Return the field names of the model found by following `location` through nested models."""
    for part in location:
        inner = model.model_fields.get(str(part))
        if inner is None or not (isinstance(inner.annotation, type) and issubclass(inner.annotation, BaseModel)):
            return []
        model = inner.annotation
    return list(model.model_fields)


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML as `safe_load` reads it, except that a key given twice is refused instead of silently overwritten."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode) and key_node.tag != "tag:yaml.org,2002:merge":
                if key_node.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"key {key_node.value!r} is given twice", key_node.start_mark
                    )
                seen.add(key_node.value)
        return super().construct_mapping(node, deep)
