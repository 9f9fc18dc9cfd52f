"""Reading YAML files into checked values: unknown keys are refused with the nearest known one suggested.

Every kind of file a user writes (layouts, studies) is a pydantic model derived from `Checked` and read by `read_yaml`.
"""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from skeleton_cgl.errors import InputError
from skeleton_cgl.plain import DEEPEST, MOST_LETTERS, copied, read_plain, shown, whole_number

_MOST_BYTES = 4 * MOST_LETTERS
_MOST_PROBLEMS = 5
_MOST_KNOWN = 40
_LONGEST_WORD = 100
"""Words that are longer are no misspelt names."""


class Checked(BaseModel):
    """A frozen value whose fields are checked when it is made; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    younger: ClassVar[Mapping[str, Any]] = {}
    """Fields that came while records were kept, each with the value that means "as before"."""

    @model_validator(mode="before")
    @classmethod
    def _truth_is_no_number(cls, given: Any) -> Any:
        # To pydantic true is 1, and so `epochs: yes` of YAML would be.
        for name, value in given.items() if isinstance(given, Mapping) else ():
            if isinstance(value, bool) and name in cls.model_fields:
                kinds = _kinds_of(cls.model_fields[name].annotation)
                if kinds & {int, float} and bool not in kinds:
                    raise ValueError(f"{name}: expected a number, found {str(value).lower()}")
        return given

    @property
    def as_before(self) -> set[str]:
        """The fields that digests leave out, so that keys stay what they were: younger ones that change nothing."""
        return {name for name, value in self.younger.items() if getattr(self, name) == value}


def _kinds_of(annotation: Any) -> set[Any]:
    """Return what a type is made of: int and None of `int | None`."""
    parts = get_args(annotation)
    return {annotation}.union(*map(_kinds_of, parts)) if parts else {annotation}


Model = TypeVar("Model", bound=Checked)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the known word nearest to `word`, else the list of known words."""
    known = sorted(known)
    if not known:
        return "; there are none"
    near = get_close_matches(word[:_LONGEST_WORD], known, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    more = f" and {len(known) - _MOST_KNOWN} more" if len(known) > _MOST_KNOWN else ""
    return f"; known: {', '.join(known[:_MOST_KNOWN])}{more}"


def place_of(word: str, names: Sequence[str]) -> int | None:
    """Return the place among `names` of what a user gives by name or by number; None where there is no such one."""
    if word in names:
        return names.index(word)
    number = whole_number(word)
    return number if number is not None and number < len(names) else None


def read_yaml(path: str | Path, model: type[Model]) -> Model:
    """Return the `model` described by the YAML file at `path`; refuse what does not fit, naming file and field."""
    return check(read_fields(path), model, where=str(path))


def read_fields(path: str | Path) -> dict[str, Any]:
    """Return the fields of a YAML file, not yet checked; refuse what `read_plain` does, and what has no fields."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        # ValueError: what is no text, and a name that no file can have.
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    try:
        content = read_plain(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if not isinstance(content, dict):
        found = "nothing" if content is None else type(content).__name__
        raise InputError(f"{path}: expected fields (`name: value`), found {found}")
    return content


def set_field(fields: dict[str, Any], assignment: str) -> None:
    """Change nested fields by an assignment such as `training.epochs=20`; the value is read as YAML."""
    path, equals, text = assignment.partition("=")
    said = assignment if len(assignment) <= _LONGEST_WORD else f"{assignment[:_LONGEST_WORD]}…"
    if not equals or not path:
        raise InputError(f"--set {said}: expected FIELD=VALUE, such as training.epochs=20")
    try:
        put(fields, path, read_plain(text))
    except InputError as error:
        raise InputError(f"--set {said}: {error}") from error


def put(fields: dict[str, Any], path: str, value: Any) -> None:
    """Set the field at a dotted path; in a list, a number means one entry and a name means that field of every entry.

    A name given as text, such as `backbone: gcn`, becomes `{name: gcn}` when a field of it is set. Every place gets a
    copy of the value. Refused: a path through something that has no fields, an entry that is not there, a path of many
    levels.
    """
    names = path.split(".")
    if len(names) > DEEPEST:
        raise InputError(f"field {shown(path)}: deeper than {DEEPEST} levels")
    _put(fields, names, value)


def _put(place: Any, path: list[str], value: Any) -> None:
    first, *rest = path
    if isinstance(place, list):
        number = whole_number(first)
        if number is not None and number >= len(place):
            raise InputError(f"there is no entry {first} among {len(place)}")
        inside = path if number is None else rest
        for entry in range(len(place)) if number is None else [number]:
            place[entry] = _entered(place[entry], inside, value)
    elif isinstance(place, dict):
        place[first] = _entered(place.get(first, {}), rest, value)
    else:
        raise InputError(f"{shown(place)} has no field {shown(first)}")


def _entered(inner: Any, path: list[str], value: Any) -> Any:
    """Return what stands at a place after the field at `path` below it was set."""
    if not path:
        return copied(value)
    inner = {"name": inner} if isinstance(inner, str) else inner
    _put(inner, path, value)
    return inner


def check(content: dict[str, Any], model: type[Model], where: str) -> Model:
    """Return `content` as a `model`; refuse what does not fit in one line, with `where` and the field at the front."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        # What is unknown comes first: it often is what is missing, misspelt.
        problems = sorted(error.errors(include_url=False), key=lambda problem: problem["type"] != "extra_forbidden")
        told = [" ".join(_explain(model, problem).split()) for problem in problems[:_MOST_PROBLEMS]]
        more = [f"and {len(problems) - _MOST_PROBLEMS} more"] if len(problems) > _MOST_PROBLEMS else []
        raise InputError(f"{where}: {'; '.join([*told, *more])}") from error


def _explain(model: type[BaseModel], problem: Any) -> str:
    kind = problem["type"]
    inside, location = _followed(model, problem["loc"])
    field = ".".join(location)
    if kind == "extra_forbidden":
        return f"unknown field {shown(field)}" + (
            "" if inside is None else did_you_mean(location[-1], inside.model_fields)
        )
    if kind == "missing":
        return f"field {shown(field)} is missing"
    if kind == "union_tag_not_found":
        return f"field {shown(_tag_of(field, problem))} is missing"
    if kind == "union_tag_invalid":
        known = [tag.strip("'") for tag in problem["ctx"]["expected_tags"].split(", ")]
        tag = problem["ctx"]["tag"]
        return f"field {shown(_tag_of(field, problem))}: unknown {shown(tag)}{did_you_mean(tag, known)}"
    message = problem["msg"].removeprefix("Value error, ")
    return f"field {shown(field)}: {message}" if field else message


def _tag_of(field: str, problem: Any) -> str:
    """Return the field that says which of several models a field has."""
    name: str = problem["ctx"]["discriminator"].strip("'")
    return f"{field}.{name}"


def _followed(model: type[BaseModel], location: tuple[Any, ...]) -> tuple[type[BaseModel] | None, list[str]]:
    """Return the model that has the last field of a location, None where it is unknown; and the location in words.

    Where one of several models is meant, pydantic has its tag in the location, though no field is called so.
    """
    models, written = [model], list[str]()
    last: type[BaseModel] | None = model
    for part in map(str, location):
        tagged = [each for each in models if len(models) > 1 and _has_tag(each, part)]
        if tagged:
            models = tagged
            continue
        written.append(part)
        last = models[0] if models else None
        inner = last.model_fields.get(part) if last else None
        # Of a field that may be None, the model is one of its types.
        kinds = () if inner is None else get_args(inner.annotation) or (inner.annotation,)
        models = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return last, written


def _has_tag(model: type[BaseModel], tag: str) -> bool:
    return any(tag in get_args(field.annotation) for field in model.model_fields.values() if field.is_required())
