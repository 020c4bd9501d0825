// pgx against a node: it prepares every statement, reads in binary, batches, and cancels by context.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func assert(ok bool, what ...any) {
	if !ok {
		check(errors.New(fmt.Sprint(what...)))
	}
}

func main() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Args[1])
	check(err)
	defer pool.Close()
	_, err = pool.Exec(ctx, "CREATE TABLE gopher (id bigint PRIMARY KEY, name text, at timestamptz, tags text[], score float8)")
	check(err)
	at := time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC)
	for i := 0; i < 10; i++ {
		_, err = pool.Exec(ctx, "INSERT INTO gopher VALUES ($1, $2, $3, $4, $5)", i, fmt.Sprint("g", i), at, []string{"a", "b"}, 0.5)
		check(err)
	}
	var name string
	var seen time.Time
	var tags []string
	check(pool.QueryRow(ctx, "SELECT name, at, tags FROM gopher WHERE id = $1", 7).Scan(&name, &seen, &tags))
	assert(name == "g7" && seen.Equal(at) && len(tags) == 2, name, seen, tags)

	batch := &pgx.Batch{}
	for i := 0; i < 10; i++ {
		batch.Queue("UPDATE gopher SET score = score + $2 WHERE id = $1", i, 1.0)
	}
	check(pool.SendBatch(ctx, batch).Close())

	check(pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "SELECT score FROM gopher ORDER BY id")
		if err != nil {
			return err
		}
		scores, err := pgx.CollectRows(rows, pgx.RowTo[float64])
		assert(len(scores) == 10 && scores[3] == 1.5, scores)
		return err
	}))

	n, err := pool.CopyFrom(ctx, pgx.Identifier{"gopher"}, []string{"id", "name"}, pgx.CopyFromSlice(100, func(i int) ([]any, error) {
		return []any{int64(1000 + i), "copied"}, nil
	}))
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "0A000" {
		fmt.Println("binary COPY is refused clearly:", pgErr.Message)
	} else {
		check(err)
		assert(n == 100, n)
	}

	_, err = pool.Exec(ctx, "INSERT INTO gopher (id) VALUES (1)")
	assert(errors.As(err, &pgErr) && pgErr.Code == "23505", err)
	fmt.Println("all fine")
}
