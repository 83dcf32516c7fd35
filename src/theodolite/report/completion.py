"""Completion for shells: a script that knows every command, option and name."""

import argparse
from collections.abc import Mapping, Sequence

SHELLS = ("bash", "zsh", "fish")


def completion_script(shell: str, whole: argparse.ArgumentParser, names: Mapping[str, Sequence[str]]) -> str:
    """The script for a shell; ``names`` are the words that a command or an option takes beside what the parser knows.

    >>> parser = argparse.ArgumentParser(prog="tool")
    >>> _ = parser.add_subparsers().add_parser("go").add_argument("--far")
    >>> "--far" in completion_script("bash", parser, {"go": ["home"]})
    True
    """
    commands = _commands(whole)
    values = {**_values(whole), **{name: known for name, known in names.items() if name.startswith("--")}}
    if shell == "fish":
        return _fish(whole.prog, commands, names, values)
    words = {name: [*options, *names.get(name, ())] for name, options in commands.items()}
    cases = "\n".join(f"    {name}) words='{' '.join(known)}' ;;" for name, known in words.items())
    after = "\n".join(f"    {option}) words='{' '.join(known)}' ;;" for option, known in values.items())
    script = _BASH.format(prog=whole.prog, commands=" ".join(commands), cases=cases, values=after)
    return script if shell == "bash" else f"autoload -U +X bashcompinit && bashcompinit\n{script}"


def _commands(whole: argparse.ArgumentParser) -> dict[str, list[str]]:
    """Each command with its options."""
    found = next(action for action in whole._actions if isinstance(action, argparse._SubParsersAction))
    return {
        name: [option for action in parser._actions for option in action.option_strings if option.startswith("--")]
        for name, parser in found.choices.items()
    }


def _values(whole: argparse.ArgumentParser) -> dict[str, list[str]]:
    """The options that take one of a few words, and these words."""
    found = next(action for action in whole._actions if isinstance(action, argparse._SubParsersAction))
    actions = (action for parser in found.choices.values() for action in parser._actions)
    return {
        option: [str(word) for word in action.choices]
        for action in actions
        if action.choices
        for option in action.option_strings
    }


def _fish(
    prog: str,
    commands: Mapping[str, Sequence[str]],
    names: Mapping[str, Sequence[str]],
    values: Mapping[str, Sequence[str]],
) -> str:
    lines = [f"complete -c {prog} -n __fish_use_subcommand -f -a '{' '.join(commands)}'"]
    for name, options in commands.items():
        for option in options:
            known = f" -x -a '{' '.join(values[option])}'" if option in values else ""
            lines.append(f"complete -c {prog} -n '__fish_seen_subcommand_from {name}' -l {option[2:]}{known}")
        if names.get(name):
            lines.append(f"complete -c {prog} -n '__fish_seen_subcommand_from {name}' -f -a '{' '.join(names[name])}'")
    return "\n".join(lines) + "\n"


_BASH = """_{prog}_words() {{
  local words='{commands}'
  if [ "$COMP_CWORD" -gt 1 ]; then
    words=
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    case "${{COMP_WORDS[COMP_CWORD-1]}}" in
{values}
    esac
  fi
  COMPREPLY=( $(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}") )
}}
complete -o default -F _{prog}_words {prog}
"""
