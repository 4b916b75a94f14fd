"""Evaluation anew as one function, ``evaluate(state)``: tries are made, the join runs over them, they are freed.

The views that are made anew are empty when it is called. Where memory runs out, a table is told and nothing is joined.
"""

from __future__ import annotations

from freshviews.codegen.layout import STATUS_STEPS, table_word, words_of
from freshviews.codegen.writer import RESERVED, Names, Writer
from freshviews.codegen.writing.appending import touched
from freshviews.codegen.writing.leapfrog import TrieNames
from freshviews.codegen.writing.prologue import write_prologue
from freshviews.codegen.writing.statements import StatementWriter
from freshviews.codegen.writing.tabulated import write_freed
from freshviews.codegen.writing.tabulated import write_made as write_tables_made
from freshviews.kernel.trie import flat as tries_kernel
from freshviews.program.printer import print_statements
from freshviews.program.program import Program
from freshviews.program.statements import Sum
from freshviews.program.structure import visit
from freshviews.program.upkeep import Evaluated


def write_evaluate(
    program: Program, evaluated: Evaluated, constants: dict[str, int], used: set[str], counted: bool
) -> str:
    """Source of the function."""
    writer = Writer()
    names = Names(RESERVED)
    statements = StatementWriter(program, writer, names, constants, used)
    statements.counted = counted
    statements.tries = TrieNames(program, names)
    used.update({"load", "store", "FAILED", "allocate", "release"})
    writer.line("@jit")
    with writer.block("def evaluate__HASH__(state):"):
        writer.line('"""')
        for line in print_statements(program, evaluated.statements).rstrip().splitlines():
            writer.line(line.replace("\\", "\\\\"))
        writer.line('"""')
        write_prologue(statements, evaluated.statements)
        for view in sorted({trie.view for trie in evaluated.tries}.difference(touched(evaluated.statements))):
            writer.line(f"{statements.table(view)} = load(state, {table_word(program, view)})")
        made = evaluated.recomputed[0]
        if counted:
            writer.line("steps = 0")
        wholes = [*_write_made(evaluated, statements), *write_tables_made(program, statements)]
        with writer.block(f"if {' and '.join(wholes) or 'True'}:"):
            _write_known(program, evaluated, statements)
            statements.body(evaluated.statements)
        with writer.block("else:"):
            writer.line(f"store({statements.table(made)}, FAILED, 1)")
        for trie in evaluated.tries:
            used.add("free_trie")
            writer.line(f"free_trie({statements.tries.trie(trie.name)})")
        for memo in statements.memos.values():
            used.add("free_memo")
            writer.line(f"free_memo({memo})")
        write_freed(program, statements, made)
        if counted:
            writer.line(f"store(status, {STATUS_STEPS}, load(status, {STATUS_STEPS}) + steps)")
        writer.line("return 0")
    return writer.text()


def _write_made(evaluated: Evaluated, statements: StatementWriter) -> list[str]:
    """Write the making of tries and memos; conditions that all of them are there."""
    writer, tries = statements.writer, statements.tries
    assert tries is not None
    wholes = []
    if evaluated.tries:
        statements.need("build_trie")
        positions = statements.names.fresh("positions")
        writer.line(f"{positions} = allocate({max(len(trie.order) for trie in evaluated.tries)})")
        wholes.append(f"{positions} != 0")
        for trie in evaluated.tries:
            writer.line(f"{tries.trie(trie.name)} = 0")
        with writer.block(f"if {positions} != 0:"):
            for trie in evaluated.tries:
                for i, position in enumerate(trie.order):
                    writer.line(f"store({positions}, {i}, {position})")
                table = statements.table(trie.view)
                made = f"build_trie({table}, {positions}, {len(trie.order)}, status)"
                writer.line(f"{tries.trie(trie.name)} = {made}")
                wholes.append(f"{tries.trie(trie.name)} != 0")
        writer.line(f"release({positions})")
    for statement in visit(evaluated.statements):
        if isinstance(statement, Sum) and statement.remembered and id(statement) not in statements.memos:
            statements.need("new_memo")
            memo = statements.names.fresh(f"{statement.alias}_memo")
            statements.memos[id(statement)] = memo
            words = len(statement.remembered) + sum(words_of(c) for c in statement.components)
            writer.line(f"{memo} = new_memo({words})")
            wholes.append(f"{memo} != 0")
    return wholes


def _write_known(program: Program, evaluated: Evaluated, statements: StatementWriter) -> None:
    """Write what is read once of each trie."""
    writer, tries = statements.writer, statements.tries
    assert tries is not None
    for trie in evaluated.tries:
        handle = tries.trie(trie.name)
        for level in range(len(trie.order)):
            word = tries_kernel.FIRST_LEVEL + tries_kernel.LEVEL * level
            writer.line(f"{tries.values(trie.name, level)} = load({handle}, {word + tries_kernel.VALUES})")
            if level < len(trie.order) - 1:
                writer.line(f"{tries.children(trie.name, level)} = load({handle}, {word + tries_kernel.CHILDREN})")
        nodes = tries_kernel.FIRST_LEVEL + tries_kernel.NODES
        writer.line(f"{tries.nodes(trie.name)} = load({handle}, {nodes})")
        key = 8 * len(program.view(trie.view).key)
        writer.line(f"{tries.carried(trie.name)} = load({handle}, {tries_kernel.CARRIED}) - {key}")
        writer.line(f"{tries.carried_bytes(trie.name)} = load({handle}, {tries_kernel.CARRIED_BYTES})")
