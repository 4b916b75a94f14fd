"""DBToaster's queries over molecular dynamics, in standard SQL.

The dialect declares external functions. Here the length of a vector is its square root of squares, the angle of two
vectors and the dihedral angle of four points are their cosines, as SQL over dot products, and the hash of a bucket is
the bucket. Coordinates are small whole numbers, so that sums of squares are exact.
"""

from __future__ import annotations

from tests.suites.suite import Column, Query, Suite, Table


def _ints(*names: str, most: int = 4) -> tuple[Column, ...]:
    return tuple(Column(name, "INT", tuple(range(1, most + 1))) for name in names)


def _four() -> tuple[Column, ...]:
    """Four atoms, most often those in order."""
    return tuple(Column(f"atom_id{i}", "INT", (i, i, i, i, 1 + i % 4)) for i in (1, 2, 3, 4))


def _doubles(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "DOUBLE", (1.0, 2.0, 4.0, 7.0)) for name in names)


TABLES = (
    Table("atompositions", (*_ints("trj_id", "t", most=1), *_ints("atom_id"), *_doubles("x", "y", "z")), rows=6),
    Table(
        "atommeta",
        (
            *_ints("protein_id", most=1),
            *_ints("atom_id"),
            Column("atom_type", "STRING", ("X", "XC", "XH", "XN", "XO")),
            Column("atom_name", "STRING", ("N", "N", "CA", "C", "NZ", "OH2")),
            *_ints("residue_id", most=2),
            Column("residue_name", "STRING", ("LYS", "TIP3")),
            Column("segment_name", "STRING", ("a",)),
        ),
        rows=7,
    ),
    Table(
        "bonds", (*_ints("protein_id", most=1), *_ints("atom_id1", "atom_id2"), *_doubles("bond_const", "bond_length"))
    ),
    Table(
        "angles",
        (*_ints("protein_id", most=1), *_ints("atom_id1", "atom_id2", "atom_id3"), *_doubles("angle_const", "angle")),
    ),
    Table(
        "dihedrals",
        (
            *_ints("protein_id", most=1),
            *_four(),
            *_doubles("force_const", "n", "delta"),
        ),
        rows=6,
    ),
    Table(
        "improperdihedrals",
        (
            *_ints("protein_id", most=1),
            *_four(),
            *_doubles("force_const", "delta"),
        ),
        rows=6,
    ),
    Table(
        "nonbonded",
        (
            *_ints("protein_id", most=1),
            *_ints("atom_id"),
            Column("atom_ty", "STRING", ("a",)),
            *_doubles("rmin", "eps", "acoef", "bcoef", "charge"),
        ),
        rows=5,
    ),
    Table("conformationpoints", (*_ints("trj_id", "t", most=1), *_ints("point_id", most=5)), rows=4),
    Table("dimensions", (*_four(), *_ints("dim_id", most=2))),
    Table(
        "buckets",
        (
            *_ints("dim_id", most=2),
            *_ints("bucket_id"),
            Column("bucket_start", "DOUBLE", (-1.1, -0.55, 0.05)),
            Column("bucket_end", "DOUBLE", (-0.05, 0.55, 1.1)),
        ),
        rows=6,
    ),
)

_LENGTH = "SQRT((p.x - p2.x) * (p.x - p2.x) + (p.y - p2.y) * (p.y - p2.y) + (p.z - p2.z) * (p.z - p2.z))"


def _difference(a: str, b: str) -> tuple[str, str, str]:
    return f"({a}.x - {b}.x)", f"({a}.y - {b}.y)", f"({a}.z - {b}.z)"


def _dot(a: tuple[str, ...], b: tuple[str, ...]) -> str:
    return "(" + " + ".join(f"{x} * {y}" for x, y in zip(a, b, strict=True)) + ")"


def _cross(a: tuple[str, str, str], b: tuple[str, str, str]) -> tuple[str, str, str]:
    pairs = ((1, 2), (2, 0), (0, 1))
    first, second, third = (f"({a[i]} * {b[j]} - {a[j]} * {b[i]})" for i, j in pairs)
    return first, second, third


def _cosine(a: tuple[str, str, str], b: tuple[str, str, str]) -> str:
    """The cosine of the angle between two vectors; NULL where one has no length."""
    return f"ROUND({_dot(a, b)} / NULLIF(SQRT({_dot(a, a)} * {_dot(b, b)}), 0), 9)"


def _dihedral(p1: str, p2: str, p3: str, p4: str) -> str:
    middle = _difference(p2, p3)
    return _cosine(_cross(_difference(p1, p2), middle), _cross(middle, _difference(p3, p4)))


_PHI_PSI = f"""
    SELECT p1.trj_id, p1.t, {_dihedral("p1", "p2", "p3", "p4")} AS phi_psi, dm.dim_id
    FROM dihedrals AS d, dimensions AS dm, atompositions AS p1, atompositions AS p2, atompositions AS p3,
      atompositions AS p4, atommeta AS m1, atommeta AS m2, atommeta AS m3, atommeta AS m4
    WHERE p1.t = p2.t AND p1.t = p3.t AND p1.t = p4.t
      AND p1.trj_id = p2.trj_id AND p1.trj_id = p3.trj_id AND p1.trj_id = p4.trj_id
      AND d.atom_id1 = m1.atom_id AND m1.atom_id = p1.atom_id AND d.atom_id2 = m2.atom_id AND m2.atom_id = p2.atom_id
      AND d.atom_id3 = m3.atom_id AND m3.atom_id = p3.atom_id AND d.atom_id4 = m4.atom_id AND m4.atom_id = p4.atom_id
      AND d.atom_id1 = dm.atom_id1 AND d.atom_id2 = dm.atom_id2
      AND d.atom_id3 = dm.atom_id3 AND d.atom_id4 = dm.atom_id4
      AND ((m1.atom_name = 'N' AND m2.atom_name = 'CA' AND m3.atom_name = 'C')
        OR (m2.atom_name = 'N' AND m3.atom_name = 'CA' AND m4.atom_name = 'C'))
"""
_BONDS = f"""
    SELECT p.t, SUM(0.5 * b.bond_const * POW({_LENGTH} - b.bond_length, 2)) AS e
    FROM bonds AS b, atompositions AS p, atompositions AS p2
    WHERE b.atom_id1 = p.atom_id AND b.atom_id2 = p2.atom_id AND p.t = p2.t
    GROUP BY p.t
"""
_ANGLES = f"""
    SELECT p.t, SUM(a.angle_const * POW({_cosine(_difference("p", "p2"), _difference("p3", "p2"))} - a.angle, 2)) AS e
    FROM angles AS a, atompositions AS p, atompositions AS p2, atompositions AS p3
    WHERE a.atom_id1 = p.atom_id AND a.atom_id2 = p2.atom_id AND a.atom_id3 = p3.atom_id AND p.t = p2.t AND p.t = p3.t
    GROUP BY p.t
"""


def _of_four(table: str, energy: str) -> str:
    matches = " AND ".join(
        f"(d.atom_id{i} = m{i}.atom_id OR m{i}.atom_type = 'X') AND m{i}.atom_id = p{i}.atom_id" for i in (1, 2, 3, 4)
    )
    return f"""
        SELECT q.t, SUM({energy}) AS e
        FROM (
          SELECT p1.t, d.*, {_dihedral("p1", "p2", "p3", "p4")} AS d_angle
          FROM {table} AS d, atompositions AS p1, atompositions AS p2, atompositions AS p3, atompositions AS p4,
            atommeta AS m1, atommeta AS m2, atommeta AS m3, atommeta AS m4
          WHERE {matches} AND p1.t = p2.t AND p1.t = p3.t AND p1.t = p4.t) AS q
        GROUP BY q.t
    """


_DIHEDRALS = _of_four("dihedrals", "force_const * (1 + COS(n * d_angle - delta))")
_IMPROPER = _of_four("improperdihedrals", "force_const * POW(d_angle - delta, 2)")
_NOT_BONDED = f"""
    SELECT pairs.t, SUM(vw_ij) AS vw_ij, SUM(e_ij) AS e_ij
    FROM (
      SELECT q.t, eps_ij * (POW(rmin_ij / r_ij, 12) - 2 * POW(rmin_ij / r_ij, 6)) AS vw_ij, q_ij / r_ij AS e_ij
      FROM (
        SELECT p.t, SQRT(n1.eps * n2.eps) AS eps_ij, n1.rmin + n2.rmin AS rmin_ij, NULLIF({_LENGTH}, 0) AS r_ij,
          n1.charge * n2.charge AS q_ij
        FROM nonbonded AS n1, nonbonded AS n2, atompositions AS p, atompositions AS p2
        WHERE n1.atom_id = p.atom_id AND n2.atom_id = p2.atom_id AND p.atom_id <> p2.atom_id AND p.t = p2.t
          AND {_LENGTH} <= 12
          AND NOT EXISTS (
            SELECT b.atom_id1 FROM bonds AS b
            WHERE (b.atom_id1 = n1.atom_id AND b.atom_id2 = n2.atom_id)
              OR (b.atom_id2 = n1.atom_id AND b.atom_id1 = n2.atom_id))
          AND NOT EXISTS (
            SELECT a.atom_id1 FROM angles AS a
            WHERE (a.atom_id1 = n1.atom_id AND a.atom_id3 = n2.atom_id)
              OR (a.atom_id1 = n2.atom_id AND a.atom_id3 = n1.atom_id))) AS q) AS pairs
    GROUP BY pairs.t
"""

QUERIES = {
    "query1": f"""
        SELECT p.trj_id, p.t, AVG({_LENGTH}) AS rdf
        FROM atompositions AS p, atommeta AS m, atompositions AS p2, atommeta AS m2
        WHERE p.trj_id = p2.trj_id AND p.t = p2.t AND p.atom_id = m.atom_id AND p2.atom_id = m2.atom_id
          AND m.residue_name = 'LYS' AND m.atom_name = 'NZ' AND m2.residue_name = 'TIP3' AND m2.atom_name = 'OH2'
        GROUP BY p.trj_id, p.t
    """,
    "query2": _PHI_PSI,
    "query2_full": f"""
        SELECT bucket_id, COUNT(*) AS n
        FROM (
          SELECT s.point_id, SUM(b.bucket_id) AS bucket_id
          FROM (
            SELECT c.point_id, c.trj_id, c.t, n.dim_id, n.phi_psi
            FROM ({_PHI_PSI}) AS n, conformationpoints AS c WHERE n.trj_id = c.trj_id AND n.t = c.t) AS s, buckets AS b
          WHERE s.dim_id = b.dim_id AND s.phi_psi > b.bucket_start AND s.phi_psi < b.bucket_end
          GROUP BY point_id) AS q
        GROUP BY q.bucket_id
    """,
    "query3, bonds": _BONDS,
    "query3, angles": _ANGLES,
    "query3, dihedrals": _DIHEDRALS,
    "query3, improper": _IMPROPER,
    "query3, not bonded": _NOT_BONDED,
    "query3": f"""
        SELECT b.t, SUM(b.e + a.e + d.e + n.vw_ij + n.e_ij) AS e
        FROM ({_BONDS}) AS b, ({_ANGLES}) AS a, ({_DIHEDRALS}) AS d, ({_IMPROPER}) AS i, ({_NOT_BONDED}) AS n
        WHERE b.t = a.t AND b.t = d.t AND b.t = n.t AND b.t = i.t
        GROUP BY b.t
    """,
}

SUITE = Suite(
    TABLES, {name: Query(text) for name, text in QUERIES.items()}, empty=frozenset(("query2_full", "query3")), slow=True
)
