#!/usr/bin/env python3
"""Writes PostgreSQL's answers into the scripts: `bless.py 'host=127.0.0.1 port=5432 user=postgres' scripts/*.sql`.

Each script runs in a database of its own (made and dropped here), by psql. A statement after a line `--- differs: why` keeps the answer it
has: there Timeball differs, for the reason said. The test itself needs no PostgreSQL: it compares with what is kept here."""
import subprocess
import sys


def statements(text):
    """(lines before, statement, old answer, differs) in order; the statement is None for what trails."""
    before, statement, differs, out = [], [], False, []
    for line in text.splitlines():
        if not statement and (line.startswith("---") or not line.strip() or (line.startswith("--") and not out)):
            before.append(line)
            differs = differs or line.startswith("--- differs")
        elif line.startswith("--"):
            if out and not statement:
                out[-1][2].append(line)
        else:
            statement.append(line)
            if line.rstrip().endswith(";"):
                out.append([before, "\n".join(statement), [], differs])
                before, statement, differs = [], [], False
    if before:
        out.append([before, None, [], False])
    return out


def answers(conninfo, items):
    """What psql prints for each statement."""
    script = "\\set VERBOSITY verbose\n\\pset null NULL\n\\set QUIET off\n"
    for item in items:
        if item[1]:
            script += f"{item[1]}\n\\echo ==END==\n"
    run = subprocess.run(
        ["psql", "-X", "-At", "-d", conninfo], input=script, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    parts = run.stdout.split("==END==\n")
    parts[0] = "\n".join(l for l in parts[0].splitlines() if not l.startswith("Null display"))
    return [part.splitlines() for part in parts[:-1]]


def shown(lines):
    for at, line in enumerate(lines):
        if line.startswith("ERROR:  "):
            return ["-- ERROR " + line[8:]]
    tags = ("INSERT ", "UPDATE ", "DELETE ", "CREATE ", "DROP ", "ALTER ", "SET", "DECLARE CURSOR", "MOVE ", "CLOSE CURSOR", "SAVEPOINT", "RELEASE", "TRUNCATE ", "PREPARE", "COMMENT", "RESET", "GRANT", "REVOKE", "ANALYZE", "VACUUM")
    return ["-- " + line for line in lines if not line.startswith(tags) and line not in ("BEGIN", "COMMIT", "ROLLBACK")]


def main():
    conninfo, paths = sys.argv[1], sys.argv[2:]
    for path in paths:
        items = statements(open(path).read())
        admin = ["psql", "-X", "-q", "-d", conninfo + " dbname=postgres", "-c"]
        subprocess.run(admin + ["DROP DATABASE IF EXISTS bless"], check=True)
        subprocess.run(admin + ["CREATE DATABASE bless TEMPLATE template0 LOCALE 'C'"], check=True)
        given = answers(conninfo + " dbname=bless", items)
        out = []
        for item, answer in zip(items, given + [[]]):
            out += item[0]
            if item[1]:
                out.append(item[1])
                out += item[2] if item[3] else shown(answer)
        open(path, "w").write("\n".join(out) + "\n")


main()
