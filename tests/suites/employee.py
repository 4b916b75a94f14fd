"""DBToaster's queries over employees and their departments, by their numbers there, in standard SQL.

Left out as no views: 39 and 40, an UPDATE and a DELETE, which are SELECTs of the same rows there and here. A subquery
of one department by name is written with IN where the name may occur twice. DATE_PART is MONTH and YEAR here, its other
name. Salaries are doubles whose sums are exact.
"""

from __future__ import annotations

import datetime as dt

from tests.suites.suite import Column, Query, Suite, Table

_DAYS = tuple(dt.date(year, month, 3) for year in (1984, 1985, 1986) for month in (1, 3, 4, 9))
TABLES = (
    Table(
        "employee",
        (
            Column("employee_id", "INT NOT NULL", tuple(range(1, 30))),
            Column("last_name", "STRING", ("SMITH", "STONE", "SCOT", "ALLEN")),
            Column("first_name", "STRING", ("JOHN", "MARY")),
            Column("middle_name", "STRING", ("Q", "J")),
            Column("job_id", "INT", (667, 668, 669, 670)),
            Column("manager_id", "INT", tuple(range(1, 12))),
            Column("hire_date", "DATE", _DAYS),
            Column("salary", "DOUBLE", (800.0, 1600.0, 2850.5, 3000.0, 3600.0, 5000.0)),
            Column("commission", "DOUBLE", (0.0, 300.0)),
            Column("department_id", "INT", (10, 20, 30, 40)),
        ),
        ("employee_id",),
        14,
    ),
    Table(
        "department",
        (
            Column("department_id", "INT NOT NULL", (10, 20, 30, 40, 50)),
            Column("name", "STRING", ("ACCOUNTING", "RESEARCH", "SALES", "OPERATIONS")),
            Column("location_id", "INT", (122, 123, 124)),
        ),
        ("department_id",),
        5,
    ),
    Table(
        "job",
        (
            Column("job_id", "INT NOT NULL", (667, 668, 669, 670)),
            Column("job_function", "STRING", ("CLERK", "STAFF", "MANAGER")),
        ),
        ("job_id",),
        4,
    ),
    Table(
        "location",
        (
            Column("location_id", "INT NOT NULL", (122, 123, 124)),
            Column("regional_group", "STRING", ("NEW YORK", "CHICAGO", "BOSTON")),
        ),
        ("location_id",),
        3,
    ),
    Table(
        "salary_grade",
        (
            Column("grade_id", "INT NOT NULL", (1, 2, 3, 4)),
            Column("lower_bound", "DOUBLE", (0.0, 1000.0, 2000.0, 3000.0)),
            Column("upper_bound", "DOUBLE", (1600.0, 2999.0, 4000.0, 9000.0)),
        ),
        ("grade_id",),
        4,
    ),
)

_ALL = """employee_id, last_name, first_name, middle_name, job_id, manager_id, hire_date, salary, commission,
    department_id"""


def _jobs_in(name: str) -> str:
    return f"""
        SELECT job_function FROM job
        WHERE job_id IN (
          SELECT job_id FROM employee
          WHERE department_id IN (SELECT department_id FROM department WHERE name = '{name}'))
    """


QUERIES = {
    "00": "SELECT * FROM employee",
    "00a": f"SELECT {_ALL} FROM employee",
    "01": "SELECT * FROM department",
    "02": "SELECT * FROM job",
    "03": "SELECT * FROM location",
    "04": "SELECT first_name, last_name, salary, commission FROM employee",
    "05": "SELECT employee_id AS id_of_the_employee, last_name AS name, department_id AS department FROM employee",
    "07": "SELECT last_name, salary * 12 AS annual_salary FROM employee",
    "08": "SELECT * FROM employee WHERE last_name = 'SMITH'",
    "09": "SELECT * FROM employee WHERE department_id = 20",
    "10": "SELECT * FROM employee WHERE salary BETWEEN 3000 AND 4500",
    "11": "SELECT * FROM employee WHERE department_id IN (20, 30)",
    "11b": f"SELECT {_ALL} FROM employee WHERE (department_id = 20) OR (department_id = 30)",
    "12": "SELECT last_name, salary, commission, department_id FROM employee WHERE department_id NOT IN (10, 30)",
    "13": "SELECT * FROM employee WHERE last_name LIKE 'S%'",
    "14": "SELECT * FROM employee WHERE last_name LIKE 'S%H'",
    "15": "SELECT * FROM employee WHERE last_name LIKE 'S___'",
    "16": "SELECT * FROM employee WHERE department_id = 10 AND salary > 3500",
    "17": "SELECT * FROM employee WHERE commission IS NULL",
    "17a": f"SELECT {_ALL} FROM employee WHERE commission = 0",
    "18": "SELECT employee_id, last_name FROM employee ORDER BY employee_id",
    "19": "SELECT employee_id, last_name, salary FROM employee ORDER BY salary DESC",
    "20": "SELECT employee_id, last_name, salary FROM employee ORDER BY last_name, salary DESC",
    "21": "SELECT employee_id, last_name, salary FROM employee ORDER BY last_name, department_id DESC",
    "22": "SELECT department_id, COUNT(*) AS n FROM employee GROUP BY department_id",
    "23": """
        SELECT department_id, COUNT(*) AS n, MAX(salary) AS most, MIN(salary) AS least, AVG(salary) AS mean
        FROM employee GROUP BY department_id
    """,
    "24a": """
        SELECT job_id, COUNT(*) AS job_count, SUM(salary) AS total_salary, SUM(salary) / COUNT(*) AS avg_salary
        FROM employee GROUP BY job_id
    """,
    "25": "SELECT MONTH(hire_date) AS m, COUNT(*) AS n FROM employee GROUP BY MONTH(hire_date) ORDER BY m",
    "26": """
        SELECT YEAR(hire_date) AS y, MONTH(hire_date) AS m, COUNT(*) AS n FROM employee
        GROUP BY YEAR(hire_date), MONTH(hire_date)
    """,
    "27": "SELECT department_id, COUNT(*) AS n FROM employee GROUP BY department_id HAVING COUNT(*) >= 4",
    "28": """
        SELECT MONTH(hire_date) AS m, COUNT(*) AS n FROM employee GROUP BY MONTH(hire_date) HAVING MONTH(hire_date) = 1
    """,
    "29": """
        SELECT MONTH(hire_date) AS m, COUNT(*) AS n FROM employee
        GROUP BY MONTH(hire_date) HAVING MONTH(hire_date) IN (1, 9)
    """,
    "30": """
        SELECT YEAR(hire_date) AS y, COUNT(*) AS n FROM employee GROUP BY YEAR(hire_date) HAVING YEAR(hire_date) = 1985
    """,
    "31": """
        SELECT YEAR(hire_date) AS y, MONTH(hire_date) AS m, COUNT(*) AS n FROM employee WHERE YEAR(hire_date) = 1985
        GROUP BY YEAR(hire_date), MONTH(hire_date)
    """,
    "32": """
        SELECT YEAR(hire_date) AS y, MONTH(hire_date) AS m, COUNT(*) AS n FROM employee
        WHERE YEAR(hire_date) = 1985 AND MONTH(hire_date) = 3 GROUP BY YEAR(hire_date), MONTH(hire_date)
    """,
    "33": """
        SELECT department_id, COUNT(*) AS n FROM employee WHERE YEAR(hire_date) = 1985
        GROUP BY YEAR(hire_date), MONTH(hire_date), department_id HAVING COUNT(*) >= 2
    """,
    "34": "SELECT * FROM employee WHERE salary = (SELECT MAX(salary) FROM employee)",
    "35": "SELECT * FROM employee WHERE department_id IN (SELECT department_id FROM department WHERE name = 'SALES')",
    "35b": f"""
        SELECT {_ALL.replace("department_id", "e.department_id")}
        FROM (SELECT department.department_id FROM department WHERE name = 'SALES') AS d
          JOIN employee AS e ON d.department_id = e.department_id
    """,
    "36": "SELECT * FROM employee WHERE job_id IN (SELECT job_id FROM job WHERE job_function = 'CLERK')",
    "36b": """
        SELECT e.* FROM employee AS e, (SELECT job_id FROM job WHERE job_function = 'CLERK') AS j
        WHERE e.job_id = j.job_id
    """,
    "37": """
        SELECT * FROM employee AS e
        WHERE e.department_id IN (
          SELECT d.department_id FROM department AS d
          WHERE d.location_id IN (SELECT l.location_id FROM location AS l WHERE l.regional_group = 'CHICAGO'))
    """,
    "38": """
        SELECT COUNT(*) AS n FROM employee
        WHERE department_id IN (SELECT department_id FROM department WHERE name = 'SALES' GROUP BY department_id)
    """,
    "39": """
        SELECT e.salary * 142 / 100 AS raised FROM employee AS e
        WHERE e.job_id IN (SELECT j.job_id FROM job AS j WHERE j.job_function = 'CLERK')
    """,
    "40": """
        SELECT * FROM employee
        WHERE department_id NOT IN (SELECT department_id FROM department WHERE name = 'ACCOUNTING')
    """,
    "41": """
        SELECT * FROM employee
        WHERE salary = (SELECT MAX(salary) FROM employee WHERE salary < (SELECT MAX(salary) FROM employee))
    """,
    "42": """
        SELECT DISTINCT e.salary FROM employee AS e
        WHERE 2 = (SELECT COUNT(DISTINCT f.salary) FROM employee AS f WHERE f.salary > e.salary)
    """,
    "43": "SELECT * FROM employee WHERE salary > ALL (SELECT salary FROM employee WHERE department_id = 30)",
    "44": "SELECT * FROM employee WHERE salary > ANY (SELECT salary FROM employee WHERE department_id = 30)",
    "45": """
        SELECT employee_id, last_name, department_id FROM employee AS e
        WHERE NOT EXISTS (SELECT d.department_id FROM department AS d WHERE d.department_id = e.department_id)
    """,
    "46": """
        SELECT name FROM department AS d
        WHERE NOT EXISTS (SELECT last_name FROM employee AS e WHERE d.department_id = e.department_id)
    """,
    "47": """
        SELECT employee_id, last_name, salary, department_id FROM employee AS e
        WHERE salary > (SELECT AVG(f.salary) FROM employee AS f WHERE f.department_id = e.department_id)
    """,
    "47a": """
        SELECT e.employee_id, e.last_name, e.salary, e.department_id FROM employee AS e
        WHERE e.salary > (SELECT SUM(f.salary) / SUM(1) FROM employee AS f WHERE e.department_id = f.department_id)
    """,
    "48": """
        SELECT employee_id, last_name, name FROM employee AS e, department AS d WHERE e.department_id = d.department_id
    """,
    "49": "SELECT employee_id, last_name, job_function FROM employee AS e, job AS j WHERE e.job_id = j.job_id",
    "50": """
        SELECT employee_id, last_name, name, regional_group FROM employee AS e, department AS d, location AS l
        WHERE e.department_id = d.department_id AND d.location_id = l.location_id
    """,
    "51": """
        SELECT name, COUNT(*) AS n FROM employee AS e, department AS d WHERE d.department_id = e.department_id
        GROUP BY name
    """,
    "52": """
        SELECT name, COUNT(*) AS n FROM employee AS e, department AS d WHERE d.department_id = e.department_id
        GROUP BY name HAVING name = 'SALES'
    """,
    "52a": """
        SELECT a.name, a.c FROM (
          SELECT d.name, COUNT(*) AS c FROM employee AS e, department AS d WHERE d.department_id = e.department_id
          GROUP BY name) AS a
        WHERE a.name = 'SALES'
    """,
    "53": """
        SELECT name, COUNT(*) AS n FROM employee AS e, department AS d WHERE d.department_id = e.department_id
        GROUP BY name HAVING COUNT(*) >= 5 ORDER BY name
    """,
    "53a": """
        SELECT a.name, a.n FROM (
          SELECT d.name, COUNT(*) AS n FROM employee AS e, department AS d WHERE d.department_id = e.department_id
          GROUP BY d.name) AS a
        WHERE a.n >= 2
    """,
    "54": """
        SELECT job_function, COUNT(*) AS n FROM employee AS e, job AS j WHERE j.job_id = e.job_id GROUP BY job_function
    """,
    "55": """
        SELECT regional_group, COUNT(*) AS n FROM employee AS e, department AS d, location AS l
        WHERE e.department_id = d.department_id AND d.location_id = l.location_id AND regional_group = 'BOSTON'
        GROUP BY regional_group
    """,
    "56": """
        SELECT employee_id, last_name, grade_id FROM employee AS e, salary_grade AS s
        WHERE salary BETWEEN lower_bound AND upper_bound ORDER BY last_name
    """,
    "57": """
        SELECT grade_id, COUNT(*) AS n FROM employee AS e, salary_grade AS s
        WHERE salary BETWEEN lower_bound AND upper_bound GROUP BY grade_id ORDER BY grade_id DESC
    """,
    "58": """
        SELECT grade_id, COUNT(*) AS n FROM employee AS e, salary_grade AS s
        WHERE salary BETWEEN lower_bound AND upper_bound AND lower_bound >= 2000 AND lower_bound <= 5000
        GROUP BY grade_id ORDER BY grade_id DESC
    """,
    "59": """
        SELECT e.last_name AS emp_name, m.last_name AS mgr_name FROM employee AS e, employee AS m
        WHERE e.manager_id = m.employee_id
    """,
    "60": """
        SELECT e.last_name AS emp_name, e.salary AS emp_salary, m.last_name AS mgr_name, m.salary AS mgr_salary
        FROM employee AS e, employee AS m WHERE e.manager_id = m.employee_id AND m.salary < e.salary
    """,
    "61": """
        SELECT m.manager_id, COUNT(*) AS n FROM employee AS e, employee AS m WHERE e.employee_id = m.manager_id
        GROUP BY m.manager_id
    """,
    "62": """
        SELECT last_name, d.department_id, d.name
        FROM employee AS e RIGHT JOIN department AS d ON e.department_id = d.department_id
    """,
    "63": """
        SELECT last_name, d.department_id, d.name
        FROM employee AS e RIGHT JOIN department AS d ON e.department_id = d.department_id
        WHERE d.department_id IN (SELECT department_id FROM department WHERE name IN ('SALES', 'OPERATIONS'))
    """,
    "63a": """
        SELECT last_name, d1.department_id, d1.name
        FROM employee AS e, department AS d1,
          (SELECT d3.department_id FROM department AS d3 WHERE d3.name = 'SALES' OR d3.name = 'OPERATIONS') AS d2
        WHERE e.department_id = d1.department_id AND d1.department_id = d2.department_id
    """,
    "64": f"{_jobs_in('SALES')} UNION {_jobs_in('ACCOUNTING')}",
    "65": f"{_jobs_in('SALES')} UNION ALL {_jobs_in('ACCOUNTING')}",
    "66": f"{_jobs_in('RESEARCH')} INTERSECT {_jobs_in('ACCOUNTING')} ORDER BY job_function",
    "names with j": "SELECT first_name FROM employee WHERE first_name LIKE '%J%'",
    "initials": "SELECT SUBSTRING(first_name, 1, 1) AS f, SUBSTRING(last_name, 1, 1) AS l FROM employee",
}

SUITE = Suite(TABLES, {name: Query(text) for name, text in QUERIES.items()})
