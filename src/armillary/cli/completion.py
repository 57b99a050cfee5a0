"""`armillary completion`: what completes verbs and options in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from armillary.cli.verb import Option, Verb, option, verb
from armillary.cli.verbs import HELP, all_verbs

DESCRIPTION = """\
Print a script that completes verbs, options and their values in a shell. For bash, add
'eval "$(armillary completion bash)"' to ~/.bashrc; for zsh, 'eval "$(armillary
completion zsh)"' to ~/.zshrc, after compinit; for fish, write it to
~/.config/fish/completions/armillary.fish.
"""


def bash(verbs: Sequence[Verb]) -> Iterator[str]:
    """Yield the lines of the script for bash; other words complete to file names."""
    yield "_armillary() {"
    yield '    local word="${COMP_WORDS[COMP_CWORD]}" words='
    yield '    case "$COMP_CWORD ${COMP_WORDS[1]} ${COMP_WORDS[COMP_CWORD-1]}" in'
    yield f'    "1 "*) words="{_names(verbs)}" ;;'
    for case, words in _cases(verbs):
        yield f'    *" {case}") words="{words}" ;;'
    for each in verbs:
        yield f'    *" {each.name} "*) [[ $word == -* ]] && words="{_flags(each)}" ;;'
    yield "    esac"
    yield '    COMPREPLY=($(compgen -W "$words" -- "$word"))'
    yield "}"
    yield "complete -o default -F _armillary armillary"


def zsh(verbs: Sequence[Verb]) -> Iterator[str]:
    """Yield the lines of the script for zsh."""
    yield "#compdef armillary"
    yield "_armillary() {"
    yield '    case "$CURRENT $words[2] $words[CURRENT-1]" in'
    yield f'    "2 "*) compadd -- {_names(verbs)} ;;'
    for case, words in _cases(verbs):
        yield f'    *" {case}") compadd -- {words} ;;'
    for each in verbs:
        yield f'    *" {each.name} "*)'
        yield f"        if [[ $PREFIX == -* ]]; then compadd -- {_flags(each)}"
        yield "        else _files; fi ;;"
    yield "    esac"
    yield "}"
    yield "compdef _armillary armillary"


def fish(verbs: Sequence[Verb]) -> Iterator[str]:
    """Yield the lines of the script for fish, with the help of each option."""
    for each in verbs:
        at_start = f"complete -c armillary -n __fish_use_subcommand -f -a {each.name}"
        yield f"{at_start} -d {_fish_text(HELP[each.name])}"
        after = f"complete -c armillary -n '__fish_seen_subcommand_from {each.name}'"
        for one in each.options:
            choices, flags = _choices(one), _flags_of(one)
            if not flags and not choices:
                continue  # an argument that is a file or any other text
            parts = [after, *(f"-l {flag.lstrip('-')}" for flag in flags)]
            if flags and _takes_value(one):
                parts.append("-r")
            if choices:
                parts.append(f"-f -a {_fish_text(' '.join(choices))}")
            parts.append(f"-d {_fish_text(one.settings['help'] or one.name)}")
            yield " ".join(parts)


SHELLS: Final[dict[str, Callable[[Sequence[Verb]], Iterator[str]]]] = {
    "bash": bash,
    "zsh": zsh,
    "fish": fish,
}


@verb(
    "completion",
    (option("shell", "which shell", choices=tuple(SHELLS)),),
    description=DESCRIPTION,
)
def run(options: argparse.Namespace) -> int:
    """Print the script."""
    for line in SHELLS[options.shell](all_verbs()):
        print(line)
    return 0


def _names(verbs: Sequence[Verb]) -> str:
    return " ".join(each.name for each in verbs)


def _flags(verb: Verb) -> str:
    return " ".join(flag for each in verb.options for flag in _flags_of(each))


def _flags_of(option: Option) -> list[str]:
    """Return an option as it is typed, and `--no-x` beside `--x` where that exists."""
    if not option.name.startswith("-"):
        return []
    is_pair = option.settings.get("action") is argparse.BooleanOptionalAction
    negated = [f"--no-{option.name.strip('-')}"] if is_pair else []
    return [option.name, *negated]


def _choices(option: Option) -> list[str]:
    return list(map(str, option.settings.get("choices", ())))


def _takes_value(option: Option) -> bool:
    return option.settings.get("action", "append") == "append"


def _cases(verbs: Sequence[Verb]) -> Iterator[tuple[str, str]]:
    """Yield verb and word before, and the words that may follow."""
    for each in verbs:
        for one in each.options:
            if words := " ".join(_choices(one)):
                before = one.name if one.name.startswith("-") else each.name
                yield f"{each.name} {before}", words


def _fish_text(text: str) -> str:
    """Return a text as a word of fish, whose quotes know two escapes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
