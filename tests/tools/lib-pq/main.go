// database/sql over lib/pq: parameters, prepared statements, transactions and their options, arrays, COPY, errors, cancellation by context.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/lib/pq"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func assert(ok bool, what ...any) {
	if !ok {
		panic(fmt.Sprint(what...))
	}
}

func main() {
	db, err := sql.Open("postgres", os.Args[1]+"?sslmode=disable&application_name=gopher")
	check(err)
	db.SetMaxOpenConns(4)
	check(db.Ping())
	_, err = db.Exec(`CREATE TABLE users (id serial PRIMARY KEY, name text NOT NULL UNIQUE, age int, at timestamptz DEFAULT now(), tags text[], data bytea, price numeric(8,2))`)
	check(err)
	var id int
	check(db.QueryRow(`INSERT INTO users (name, age, tags, data, price) VALUES ($1, $2, $3, $4, $5) RETURNING id`, "Ada", 21, pq.Array([]string{"a", `q"x`}), []byte{0, 255}, "1.50").Scan(&id))
	assert(id == 1, id)
	var (
		name  string
		age   sql.NullInt64
		at    time.Time
		tags  []string
		data  []byte
		price string
	)
	check(db.QueryRow(`SELECT name, age, at, tags, data, price FROM users WHERE id = $1`, id).Scan(&name, &age, &at, pq.Array(&tags), &data, &price))
	assert(name == "Ada" && age.Int64 == 21 && time.Since(at) < time.Hour && len(tags) == 2 && data[1] == 255 && price == "1.50", name, age, at, tags, data, price)

	stmt, err := db.Prepare(`INSERT INTO users (name, age) VALUES ($1, $2)`)
	check(err)
	for i := 0; i < 50; i++ {
		_, err = stmt.Exec(fmt.Sprint("u", i), i)
		check(err)
	}
	check(stmt.Close())
	rows, err := db.Query(`SELECT name FROM users WHERE age < $1 AND id = ANY($2) ORDER BY id`, 10, pq.Array([]int{2, 3, 99}))
	check(err)
	n := 0
	for rows.Next() {
		check(rows.Scan(&name))
		n++
	}
	check(rows.Err())
	assert(n == 2, n)

	_, err = db.Exec(`INSERT INTO users (name) VALUES ($1)`, "Ada")
	var refused *pq.Error
	assert(errors.As(err, &refused) && refused.Code.Name() == "unique_violation" && refused.Constraint == "users_name_key", err)

	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		tx, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: level})
		check(err)
		result, err := tx.Exec(`UPDATE users SET age = age + 1 WHERE age IS NOT NULL`)
		check(err)
		changed, _ := result.RowsAffected()
		assert(changed == 51, changed)
		check(tx.Rollback())
	}
	tx, err := db.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	check(err)
	_, err = tx.Exec(`DELETE FROM users`)
	assert(errors.As(err, &refused) && refused.Code == "25006", err)
	check(tx.Rollback())

	tx, err = db.Begin()
	check(err)
	copying, err := tx.Prepare(pq.CopyIn("users", "name", "age"))
	check(err)
	for i := 0; i < 1000; i++ {
		_, err = copying.Exec(fmt.Sprint("copied ", i), i)
		check(err)
	}
	_, err = copying.Exec()
	check(err)
	check(copying.Close())
	check(tx.Commit())
	check(db.QueryRow(`SELECT count(*) FROM users WHERE name LIKE 'copied%'`).Scan(&n))
	assert(n == 1000, n)

	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err = db.ExecContext(ctx, `SELECT pg_sleep(600)`)
	assert(err != nil)
	check(db.QueryRow(`SELECT 1`).Scan(&n))
	types, err := db.Query(`SELECT * FROM users LIMIT 0`)
	check(err)
	columns, err := types.ColumnTypes()
	check(err)
	precision, scale, _ := columns[6].DecimalSize()
	assert(columns[4].DatabaseTypeName() == "_TEXT" && precision == 8 && scale == 2, columns[4].DatabaseTypeName(), precision, scale)
	check(types.Close())
	check(db.Close())
	fmt.Println("all fine")
}
