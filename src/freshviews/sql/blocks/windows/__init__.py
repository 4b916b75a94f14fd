"""Rewrites window functions over the rows of one source, here ``t(id, p, x)``, as joins::

    SUM(x) OVER (PARTITION BY p)              JOIN (SELECT p, SUM(x) AS v FROM t GROUP BY p) q ON q.p <=> t.p
    SUM(x) OVER (PARTITION BY p ORDER BY x)   JOIN (SELECT d.p, d.x, SUM(t.x) AS v
                                                    FROM (SELECT DISTINCT p, x FROM t) d
                                                    JOIN t ON t.p <=> d.p AND x in the frame of d.x GROUP BY d.p, d.x) q
                                                ON q.p <=> t.p AND q.x <=> t.x
    RANK() OVER (PARTITION BY p ORDER BY x)   JOIN (the ranks of p, x in t) q ON q.p <=> t.p AND q.x <=> t.x
    ROW_NUMBER() OVER (...)                   (t with its numbers) in the place of t
    LAG(x) OVER (...)                         (t with the columns of the row before) in the place of t
    SUM(x) OVER (... ROWS 9 PRECEDING)        (t with the sums of frames) in the place of t
    FIRST_VALUE(x) OVER (...)                 LEFT JOIN (t with its numbers) q ON q.p <=> t.p AND q.row_number = 1

The first line's view is a GROUP BY. Strategy ``top_k`` maintains the other views. ``query.span`` defines the condition
``x in the frame of d.x``. ORDER BY may have any expressions. With ROWS, columns are appended to ORDER BY until no two
rows are equal in it.
"""

__all__ = ["binding", "nearest", "rows"]
