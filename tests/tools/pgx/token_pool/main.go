// One token for a pool: what one connection has written any other sees, under "token", though they do not know of each other. Two URLs: two nodes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Token is the greatest one that any connection has heard of. Those of one cluster sort as texts.
type Token struct {
	mutex    sync.Mutex
	greatest string
}

func (t *Token) heard(conn *pgx.Conn) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.greatest = max(t.greatest, conn.PgConn().ParameterStatus("timeball.token"))
}

func (t *Token) get() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.greatest
}

// pool gives connections what was heard before they are used, and hears what they were told afterwards.
func (t *Token) pool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.RuntimeParams["timeball.report_token"] = "on"
	config.ConnConfig.RuntimeParams["timeball.consistency"] = "token"
	config.BeforeAcquire = func(ctx context.Context, conn *pgx.Conn) bool {
		greatest := t.get()
		if greatest == "" || greatest == conn.PgConn().ParameterStatus("timeball.token") {
			return true
		}
		_, err := conn.Exec(ctx, "SELECT set_config('timeball.token', $1, false)", greatest)
		return err == nil
	}
	config.AfterRelease = func(conn *pgx.Conn) bool {
		t.heard(conn)
		return true
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// do is one use of a connection. (A pool's own Exec returns before AfterRelease has run: what follows it might not know of it.)
func (t *Token) do(ctx context.Context, pool *pgxpool.Pool, use func(*pgxpool.Conn) error) {
	check(pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		err := use(conn)
		t.heard(conn.Conn())
		return err
	}))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	ctx, token := context.Background(), &Token{}
	urls := os.Args[1:]
	pools := make([]*pgxpool.Pool, 2)
	for i := range pools {
		pool, err := token.pool(ctx, urls[i%len(urls)])
		check(err)
		defer pool.Close()
		pools[i] = pool
	}
	exec := func(pool int, sql string, args ...any) {
		token.do(ctx, pools[pool], func(conn *pgxpool.Conn) error {
			_, err := conn.Exec(ctx, sql, args...)
			return err
		})
	}
	exec(0, "CREATE TABLE passed_on (id int PRIMARY KEY, v int)")
	exec(0, "INSERT INTO passed_on VALUES (1, 0)")
	for n := 1; n <= 100; n++ {
		exec(n%2, "UPDATE passed_on SET v = $1", n)
		token.do(ctx, pools[1-n%2], func(conn *pgxpool.Conn) error {
			var seen int
			if err := conn.QueryRow(ctx, "SELECT v FROM passed_on").Scan(&seen); err != nil {
				return err
			}
			if seen != n {
				return fmt.Errorf("%d was written, and %d is seen", n, seen)
			}
			return nil
		})
	}
	exec(1, "DROP TABLE passed_on")
	// What was not given out by this cluster is refused, and says why.
	_, err := pools[0].Exec(ctx, "SELECT set_config('timeball.token', $1, false)", token.get()[1:])
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "22023" || refused.Detail == "" {
		check(fmt.Errorf("a forged token: %v", err))
	}
	fmt.Println("all fine")
}
