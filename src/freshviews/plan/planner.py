"""The planner: class, dependencies, and the first strategy whose conditions hold; or the one named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from freshviews.errors import PlanError
from freshviews.plan import STRATEGIES, first_order, view_tree
from freshviews.plan.assemble import assemble
from freshviews.program.nodes import Program
from freshviews.query.block import Block, TableDef, ViewDef
from freshviews.query.dependencies import FD, from_keys
from freshviews.query.query import Query
from freshviews.query.query_class import QueryClass, classify


@dataclass(frozen=True)
class Plan:
    """A block's program and why it was taken."""

    program: Program
    kind: QueryClass
    strategy: str
    reason: str


def plan_block(view: ViewDef, block: Block, inputs: Mapping[str, TableDef | ViewDef]) -> Plan:
    """Choose a strategy for a block, or take the view's, and make its program."""
    dependencies = from_keys(block.query, _keys(inputs))
    kind = classify(block.query, dependencies)
    if view.strategy is not None:
        return _named(view, block, dependencies, kind)
    in_z = sorted(name for name, relation in inputs.items() if may_be_negative(relation))
    if block.kind == "bag" and not in_z and _worth_factorising(kind):
        program = view_tree.plan_factorised(block.query, dependencies)
        if program is not None:
            return Plan(program, kind, "view_tree", "the result stays factorised over the view tree")
    if kind.acyclic or len(block.query.atoms) == 1:
        reason = "acyclic: one view tree serves all updates"
        if block.kind == "bag" and in_z:
            reason += f"; the result is held, for multiplicities of {', '.join(in_z)} may be negative"
        return Plan(_view_tree(block, dependencies), kind, "view_tree", reason)
    reason = "cyclic: deltas over the base relations take linear space and the smaller side's time"
    return Plan(assemble(block, first_order.plan), kind, "first_order", reason)


def _worth_factorising(kind: QueryClass) -> bool:
    return kind.acyclic and kind.dynamic_width <= 1


def _view_tree(block: Block, dependencies: tuple[FD, ...]) -> Program:
    main = block.query

    def strategy(query: Query) -> Program:
        return view_tree.plan(query, dependencies if query is main else ())

    return assemble(block, strategy)


def _named(view: ViewDef, block: Block, dependencies: tuple[FD, ...], kind: QueryClass) -> Plan:
    reason = "named by the user"
    if view.strategy == "view_tree":
        return Plan(_view_tree(block, dependencies), kind, "view_tree", reason)
    named: Callable[[Query], Program] | None = STRATEGIES.get(view.strategy or "")
    if named is None:
        known = ", ".join(sorted(STRATEGIES))
        raise PlanError(
            f"view {view.name}: there is no strategy '{view.strategy}'; 'freshviews.strategy' takes {known}"
        )
    return Plan(assemble(block, named), kind, view.strategy or "", reason)


def _keys(inputs: Mapping[str, TableDef | ViewDef]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Keys that hold at every moment: those that are checked."""
    return {
        name: relation.keys
        for name, relation in inputs.items()
        if isinstance(relation, TableDef) and not relation.trusted
    }


def may_be_negative(relation: TableDef | ViewDef) -> bool:
    """Whether rows of the relation may have a negative multiplicity for a while: those of trusted tables,
    and of bags, which may come from such tables."""
    if isinstance(relation, TableDef):
        return relation.trusted
    return any(block.kind == "bag" for block in relation.blocks)
