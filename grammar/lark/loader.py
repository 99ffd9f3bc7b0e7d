"""From the text of a Lark grammar, and of those it imports, to definitions.

A grammar file is read into a scope of its own; an import puts definitions of the other file's
scope into this one, under the names it gives them, so that they keep finding their neighbours.
`%ignore` counts in the main file alone, as in Lark. `%override` of an imported rule changes it for
the rules of its own file too; of an imported terminal, for this file only; `%extend` for all. A
file is looked for in `import_paths`, then, for a relative import, beside the importing file, then
among the grammars that come with the package lark (`common`, `python`, `unicode`, `lark`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

from grammaton.errors import GrammarError, LimitExceeded, PlacedError
from grammaton.grammar.ebnf_nodes import Source
from grammaton.grammar.lark.nodes import (
    Alt,
    Definition,
    Name,
    Nested,
    Node,
    Scope,
    Use,
    children,
)
from grammaton.grammar.lark.parser import Declare, Define, Ignore, Import, Statement, read_lark
from grammaton.grammar.missing_start import missing_start

MAX_IMPORTS = 200
"""Files that one grammar may import, each counted for every file that imports it."""


@dataclass
class Loaded:
    """A grammar with everything it imports.

    Attributes:
        scope: the names of the main file.
        ignored: what may stand between terminals.
        declared: the names of every `%declare`, those of imported files too.
        nested: the grammars within rules, by the identity of their scopes.
        source: the text of the main file.
    """

    scope: Scope
    ignored: list[Ignore]
    declared: set[str]
    nested: dict[int, Loaded]
    source: Source

    def missing_start(self, start: str) -> PlacedError:
        """The error for a start that the file does not define; it is for the caller to raise."""
        rules = {n: each.span for n, each in self.scope.names.items() if not each.is_terminal}
        own = {n: span for n, span in rules.items() if span.source.file == self.source.file}
        return missing_start(
            start, {n: each.error for n, each in (own or rules).items()}, self.source
        )


@dataclass
class _Loader:
    import_paths: list[Path]
    files: int = 0
    declared: set[str] = field(default_factory=set)
    nested: dict[int, Loaded] = field(default_factory=dict)

    def load(self, text: str, file: Path | None, chain: tuple[Path, ...]) -> Loaded:
        """Reads one file and those it imports; `chain` are the files that led here."""
        scope = Scope()
        source = Source(text, "" if file is None else file.name)
        statements = read_lark(text, scope, source.file)
        return self._fill(scope, statements, source, file, chain, checked=file is None)

    def _fill(
        self,
        scope: Scope,
        statements: Sequence[Statement],
        source: Source,
        file: Path | None,
        chain: tuple[Path, ...],
        *,
        checked: bool,
    ) -> Loaded:
        """Puts what statements define into their scope."""
        ignored: list[Ignore] = []
        imports: dict[tuple[bool, tuple[str, ...]], list[Import]] = {}
        for statement in statements:
            if isinstance(statement, Import):
                key = statement.relative, statement.path
                imports.setdefault(key, []).append(statement)
        for group in imports.values():
            self._import(scope, group, file, chain)
        for statement in statements:
            if isinstance(statement, Define):
                _define(scope, statement)
            elif isinstance(statement, Declare):
                _add(scope, Definition(statement.name, (), None, statement.span))
                self.declared.add(statement.name)
            elif isinstance(statement, Ignore):
                ignored.append(statement)
        for statement in statements:
            if isinstance(statement, Define):
                self._fill_nested(statement.body, source, file, chain)
        if checked:
            for definition in scope.names.values():
                for param in definition.params:
                    if param in scope.names:
                        raise definition.span.error(f"the parameter {param} has the name of a rule")
                if definition.body is not None:
                    check_names(definition.body, definition.params)
            for ignore in ignored:
                check_names(ignore.body, ())
        return Loaded(scope, ignored, self.declared, self.nested, source)

    def _fill_nested(
        self, body: Node, source: Source, file: Path | None, chain: tuple[Path, ...]
    ) -> None:
        stack = [body]
        while stack:
            top = stack.pop()
            if isinstance(top, Nested):
                statements: Any = top.statements
                loaded = self._fill(top.scope, statements, source, file, chain, checked=True)
                self.nested[id(top.scope)] = loaded
            stack.extend(children(top))

    def _import(
        self, scope: Scope, group: list[Import], file: Path | None, chain: tuple[Path, ...]
    ) -> None:
        first = group[0]
        path = self._find(first, file)
        if path in chain:
            raise first.span.error(f"{path.name} imports itself")
        self.files += 1
        if self.files > MAX_IMPORTS:
            raise first.span.error(
                f"the grammar imports more than {MAX_IMPORTS} files", kind=LimitExceeded
            )
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise first.span.error(f"{path} cannot be read: {error}") from None
        other = self.load(text, path, (*chain, path)).scope
        for statement in group:
            for there, here, span in statement.names:
                definition = other.names.get(there)
                if definition is None:
                    raise span.error(f"{path.name} has no {there}")
                if here in scope.names:
                    raise span.error(f"{here} is imported twice")
                scope.names[here] = definition

    def _find(self, statement: Import, file: Path | None) -> Path:
        relative = Path(*statement.path).with_suffix(".lark")
        folders = list(self.import_paths)
        if statement.relative:
            folders += [file.parent if file is not None else Path()]
        library = _library()
        folders += [library] if library is not None else []
        for folder in folders:
            try:
                if (folder / relative).is_file():
                    return (folder / relative).resolve()
            except (OSError, ValueError):  # a name that is too long, a NUL in a folder's
                continue
        if library is None:
            hint = "the grammars of the package lark need grammaton[lark]"
        else:
            hint = f"looked in {', '.join(dict.fromkeys(map(str, folders)))}"
        raise statement.span.error(f"there is no grammar {relative.as_posix()}; {hint}")


def load_lark(text: str, import_paths: Sequence[str | PathLike[str]]) -> Loaded:
    """Reads a grammar and everything it imports.

    Args:
        text: the grammar.
        import_paths: folders where imported files are looked for, before those of Lark itself.

    Raises:
        GrammarError: a syntax error, a name that is missing or defined twice, an import that does
            not exist, with its place.
        LimitExceeded: too many imports.
    """
    if isinstance(import_paths, str | bytes | PathLike) or not isinstance(import_paths, Iterable):
        raise GrammarError(f"import_paths is a list of folders, not the single {import_paths!r}")
    loader = _Loader([_folder(path) for path in import_paths])
    return loader.load(text, None, ())


def check_names(node: Node, params: Sequence[str]) -> None:
    """Raises GrammarError at the first name that means nothing, or is used as it cannot be."""
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, Name):
            resolve(top, params)
        elif isinstance(top, Use):
            resolve(top.template, params, arguments=len(top.arguments))
            for argument in top.arguments:
                if isinstance(argument, Name):
                    resolve(argument, params, arguments=None)
                else:
                    stack.append(argument)
        else:
            stack.extend(children(top))


def resolve(name: Name, params: Sequence[str], *, arguments: int | None = 0) -> Definition | None:
    """The definition that a name means; None for a parameter.

    Args:
        name: the name where it is used.
        params: the parameters in force there.
        arguments: how many follow in braces; None where a template may stand without any, as an
            argument of another.
    """
    if name.name in params:
        return None
    definition = name.scope.names.get(name.name)
    if definition is None:
        kind = "terminal" if name.is_terminal else "rule"
        raise name.span.error(f"{kind} {name.name} is not defined")
    wanted = len(definition.params)
    if arguments is not None and wanted != arguments:
        raise name.span.error(
            f"{name.name} takes {wanted} argument{'s' * (wanted != 1)}, not {arguments}"
        )
    return definition


def _define(scope: Scope, statement: Define) -> None:
    name, span = statement.name, statement.span
    known = scope.names.get(name)
    if statement.how == "define":
        _add(scope, _made(statement))
        return
    if known is None:
        raise span.error(f"{name} is not defined before, so there is nothing to {statement.how}")
    if statement.how == "override":
        if known.is_terminal:
            scope.names[name] = _made(statement)
        else:
            known.params, known.body, known.span = statement.params, statement.body, span
            known.attributes = statement.attributes
        return
    if known.params != statement.params:
        raise span.error(f"{name} cannot be extended with other parameters than it has")
    if statement.attributes is not None:
        raise span.error(f"attributes belong to the definition of {name}, not to what extends it")
    if known.body is None:
        raise span.error(f"{name} is only declared, so there is nothing to extend")
    old = known.body.branches if isinstance(known.body, Alt) else (known.body,)
    known.body = Alt((statement.body, *old))


def _made(statement: Define) -> Definition:
    return Definition(
        statement.name, statement.params, statement.body, statement.span, statement.attributes
    )


def _add(scope: Scope, definition: Definition) -> None:
    if definition.name in scope.names:
        kind = "terminal" if definition.is_terminal else "rule"
        raise definition.span.error(f"{kind} {definition.name} is defined twice")
    scope.names[definition.name] = definition


def _library() -> Path | None:
    """The folder of the grammars that come with the package lark."""
    found = find_spec("lark")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "grammars"


def _folder(path: str | PathLike[str]) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise GrammarError(f"import_paths holds paths, not {type(path).__name__}") from None
